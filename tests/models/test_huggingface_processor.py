"""How models of transformers want their pictures, by files as they are published."""

import pytest
import torch

from rankshot.models.huggingface_processor import pictures_of
from rankshot.preprocess import Preprocess

HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_normalize": True}
# What the files of well-known models tell, and what becomes of it: height and width, fit, interpolation.
FILES = {
    "ViT, earlier": ({**HALF, "size": 224, "resample": 2, "do_resize": True}, (224, 224, "stretch", "bilinear")),
    "ViT": (
        {**HALF, "size": {"height": 224, "width": 224}, "resample": 2, "crop_size": None, "do_center_crop": None},
        (224, 224, "stretch", "bilinear"),
    ),
    "CLIP, earlier": (
        {**HALF, "size": 224, "crop_size": 224, "do_center_crop": True, "resample": 3},
        (224, 224, "crop", "bicubic"),
    ),
    "DINOv2": (
        {**HALF, "size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True,
         "resample": 3},
        (224, 224, "crop", "bicubic"),
    ),
    "ConvNeXt": (
        {**HALF, "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3},
        (224, 224, "crop", "bicubic"),
    ),
    "ConvNeXt, large": (
        {**HALF, "size": {"shortest_edge": 384}, "crop_pct": 1.0, "resample": 3},
        (384, 384, "stretch", "bicubic"),
    ),
    "SAM": ({**HALF, "size": {"longest_edge": 1024}, "do_pad": True, "resample": 2}, (1024, 1024, "pad", "bilinear")),
    "of its own shape": ({**HALF, "size": {"height": 96, "width": 128}, "resample": 0}, (96, 128, "stretch", "nearest")),
    "without a size": ({**HALF, "do_resize": False}, (32, 32, "crop", "bilinear")),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_known_files(name):
    told, (height, width, fit, interpolation) = FILES[name]
    pictures = pictures_of(told, 3, 32, "x.json")
    assert pictures.preprocess == Preprocess(3, height, width, fit=fit, interpolation=interpolation)
    assert (pictures.mean, pictures.deviation, pictures.blue_first) == ((0.5,) * 3, (0.5,) * 3, False)


def theirs(pixels, told):
    """Step by step, as transformers' own classes do it: pixels from 0 to 255."""
    values = pixels * told.get("rescale_factor", 1 / 255) if told.get("do_rescale", True) else pixels
    values = values - 1 if told.get("rescale_offset") else values
    mean, deviation = (
        torch.tensor(told.get(name, [other] * 3)) for name, other in (("image_mean", 0.0), ("image_std", 1.0))
    )
    if told.get("do_normalize"):
        values = (values - mean) / deviation
    return values / deviation if told.get("include_top") else values


@pytest.mark.parametrize(
    "told",
    [
        HALF,
        {**HALF, "do_normalize": False},
        {**HALF, "do_rescale": False, "image_mean": [120.0, 110.0, 100.0], "image_std": [60.0, 58.0, 56.0]},
        {"do_normalize": False, "do_rescale": False},
        {**HALF, "rescale_factor": 1 / 127.5, "rescale_offset": True},
        {**HALF, "rescale_factor": 1 / 127.5, "rescale_offset": True, "do_normalize": False},
        {**HALF, "include_top": True},
        {"do_rescale": True, "do_flip_channel_order": True},
    ],
)
def test_scale(told):
    pictures = pictures_of({"size": 32, **told}, 3, None, "x.json")
    pixels = torch.randint(0, 256, (10, 3)).float()
    mean, deviation = torch.tensor(pictures.mean or [0.0] * 3), torch.tensor(pictures.deviation or [1.0] * 3)
    torch.testing.assert_close((pixels / 255 - mean) / deviation, theirs(pixels, told), atol=1e-4, rtol=1e-4)
    assert pictures.blue_first == told.get("do_flip_channel_order", False)
    if not told.get("do_normalize") and told.get("do_rescale", True) and "rescale_factor" not in told:
        assert (pictures.mean, pictures.deviation) == ((), ())


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"size": "large"}, "x.json: size must be a whole number or an object or a list of whole numbers, got 'large'"),
        ({"size": {"height": 32}}, "x.json: size must tell height and width, or shortest_edge, got"),
        ({"size": 4096}, "x.json: preprocess: height must be a whole number from 1 to 2048, got 4096"),
        ({"size": 32, "resample": 7}, "x.json: resample must be one of 0, 1, 2, 3, 4, got 7"),
        ({"size": 32, "rescale_factor": 0}, "x.json: rescale_factor must be more than 0, got 0"),
        ({"size": 32, "image_mean": [0.5]}, "x.json: image_mean must have a number for each of 3 channels, got [0.5]"),
        ({}, "x.json: size must tell height and width, or shortest_edge, got None"),
    ],
)
def test_refused(told, sentence):
    with pytest.raises(ValueError) as caught:
        pictures_of(told, 3, None, "x.json")
    assert sentence in str(caught.value)
