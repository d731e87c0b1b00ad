"""Vectors of images are those of the network, whatever the chunk; a network is known by what it does."""

import copy
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from rankshot.fewshot.answerer import embed
from rankshot.gallery import Embedder, Unreadable
from rankshot.models import Conv4, from_pretrained
from rankshot.models.efficientnet_lite import preprocess_at
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors, write_tensors

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Conv4(in_channels=3, filters=8).eval()


def test_the_network_s_own(network, monkeypatch):
    images = RANDOM.integers(0, 256, (7, 3, 16, 16), dtype=np.uint8)
    expected = embed(network, torch.from_numpy(images).float() / 255).numpy()
    embedder = Embedder(network, Preprocess(3, 16, 16))
    assert embedder.dimensions == 8
    np.testing.assert_allclose(embedder(images), expected, atol=1e-6)
    monkeypatch.setattr(embedder, "_at_once", 2)
    np.testing.assert_allclose(embedder(iter(images)), expected, atol=1e-6)
    assert embedder([]).shape == (0, 8)


def test_shipped_weights_know_what_they_want(tmp_path):
    embedder = Embedder("conv4-omniglot")
    assert (embedder.preprocess, embedder.dimensions) == (Preprocess(1, 28, 28, invert=True), 64)
    paper = np.full((105, 105), 255, np.uint8)
    paper[40:60, 20:80] = 0  # dark ink
    Image.fromarray(paper).save(tmp_path / "a.png")
    ready = np.zeros((1, 28, 28), np.uint8)
    assert not np.allclose(embedder([tmp_path / "a.png"]), embedder([ready]))
    model = from_pretrained("conv4-omniglot")
    small = 255 - np.asarray(Image.fromarray(paper).resize((28, 28), Image.Resampling.BICUBIC, reducing_gap=2.0))
    expected = embed(model, torch.from_numpy(small)[None, None].float() / 255)
    np.testing.assert_allclose(embedder([tmp_path / "a.png"]), expected, atol=1e-6)
    assert Embedder("conv4-mini-imagenet").preprocess.shape == (3, 84, 84)
    assert Embedder("conv4-cub").preprocess.shape == (3, 64, 64)


def test_where_it_computes(device, tmp_path):
    """Vectors are float32 on the CPU and the same from anywhere, and so are the fingerprint and what is saved."""
    images = RANDOM.integers(0, 256, (7, 1, 28, 28), dtype=np.uint8)
    there, here = Embedder("conv4-omniglot", device=device), Embedder("conv4-omniglot", device="cpu")
    assert (there.device.type, here.device.type) == (device, "cpu")
    vectors = there(images)
    assert (type(vectors), vectors.dtype) == (np.ndarray, np.float32)
    np.testing.assert_allclose(vectors, here(images), atol=1e-5)
    assert there.fingerprint == here.fingerprint
    with torch.no_grad():
        for embedder in (there, here):
            next(embedder.network.parameters()).mul_(-1)  # so that the weights are saved, and no file is copied
    one, other = (
        read_tensors(embedder.save_pretrained(tmp_path / name) / "model.safetensors")
        for embedder, name in ((there, "there"), (here, "here"))
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert Embedder("conv4-omniglot").device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_module_is_moved_only_when_that_is_asked_for(device):
    network = Conv4(in_channels=3, filters=8)
    assert Embedder(network, Preprocess(3, 16, 16)).device.type == "cpu"
    assert Embedder(network, Preprocess(3, 16, 16), device=device).device.type == device
    assert next(network.parameters()).device.type == device


def test_devices_that_are_not_there(monkeypatch):
    with pytest.raises(ValueError, match="device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"):
        Embedder("conv4-omniglot", device="tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device is 'cuda', but torch finds no CUDA device here: use 'cpu' or 'auto'"):
        Embedder("conv4-omniglot", device="cuda")


def test_all_that_cannot_be_read_are_named(network, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"nothing")
    images = [np.zeros((16, 16, 3), np.uint8), tmp_path / "broken.jpg", "nowhere.jpg"]
    embedder = Embedder(network, Preprocess(3, 16, 16))
    with pytest.raises(
        Unreadable, match=r"2 of 3 images cannot be read: .*broken.jpg: no image.*; nowhere.jpg: No such"
    ) as told:
        embedder(images)
    assert len(told.value.failures) == 2
    (part,) = embedder.each(images)
    assert (part.places, part.vectors.shape, len(part.failures)) == ([0], (1, 8), 2)


def test_a_fingerprint_is_of_weights_and_of_how_images_are_made_ready(network):
    made = Embedder(network, Preprocess(3, 16, 16))
    torch.manual_seed(1)
    others = [
        Embedder(Conv4(in_channels=3, filters=8), Preprocess(3, 16, 16)),
        Embedder(network, Preprocess(3, 32, 32)),
        Embedder(network, Preprocess(3, 16, 16, invert=True)),
        Embedder(network, Preprocess(3, 16, 16, fit="crop")),
    ]
    assert made.fingerprint == Embedder(network, Preprocess(3, 16, 16), name="another name").fingerprint
    assert len({made.fingerprint, *(each.fingerprint for each in others)}) == 5
    narrow = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten())  # whose weights have other strides in channels_last
    before = Embedder(narrow, Preprocess(3, 4, 4)).fingerprint
    assert Embedder(narrow.to(memory_format=torch.channels_last), Preprocess(3, 4, 4)).fingerprint == before
    flat, other = nn.Sequential(nn.Flatten()), nn.Sequential(nn.Flatten(), nn.ReLU())  # neither has any weights
    assert Embedder(flat, Preprocess(1, 4, 4)).fingerprint != Embedder(other, Preprocess(1, 4, 4)).fingerprint


def test_what_is_saved_is_what_embeds(tmp_path):
    """Also when the run has gone on or away since, or the network was changed here."""
    run = Embedder("conv4-omniglot").save_pretrained(tmp_path / "run")
    embedder = Embedder(run)
    images = RANDOM.integers(0, 256, (5, 1, 28, 28), dtype=np.uint8)
    expected = embedder(images)
    assert (embedder.save_pretrained(tmp_path / "same") / "evaluation.json").exists()
    torch.manual_seed(0)
    (run / "model.safetensors").unlink()
    write_tensors(run / "model.safetensors", Conv4().state_dict(), {})
    saved = embedder.save_pretrained(tmp_path / "gone-on")
    assert (Embedder(saved)(images) == expected).all()
    assert not (saved / "evaluation.json").exists()  # which is about other weights by now
    assert Embedder(saved).fingerprint == embedder.fingerprint
    shutil.rmtree(run)
    assert (Embedder(embedder.save_pretrained(tmp_path / "went-away"))(images) == expected).all()
    with torch.no_grad():
        next(embedder.network.parameters()).mul_(-1)
    changed = Embedder(embedder.save_pretrained(tmp_path / "changed"))(images)
    assert (changed == embedder(images)).all()
    assert not (changed == expected).all()


def test_thresholds_are_for_images_made_ready_like_theirs(tmp_path):
    assert Embedder("conv4-omniglot").one_shot is not None
    other = Embedder("conv4-omniglot", Preprocess(1, 28, 28))
    assert other.one_shot is None
    assert Embedder(other.save_pretrained(tmp_path / "other")).one_shot is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(network, dtype):
    images = RANDOM.integers(0, 256, (4, 3, 16, 16), dtype=np.uint8)
    expected = Embedder(network, Preprocess(3, 16, 16))(images)
    found = Embedder(copy.deepcopy(network).to(dtype), Preprocess(3, 16, 16))(images)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6 if dtype == torch.float64 else 0.05)


def test_images_so_large_that_a_layer_takes_all_memory():
    with pytest.raises(ValueError, match="too large: 2048x2048 pixels take 1,024 MiB in one layer, 256 are the most"):
        Embedder(Conv4(3, 64), Preprocess(3, 2048, 2048))


def test_a_wide_layer_that_sees_few_places_is_not_too_large():
    """1,280 filters at 260x260 pixels would be; those of EfficientNet-Lite2 see 9x9 places."""
    assert Embedder(build({"name": "efficientnet-lite2"}, preprocess_at(260))).dimensions == 1280


def test_bad_networks(network, tmp_path):
    with pytest.raises(ValueError, match=r"Conv4 does not tell what pictures it wants: give Embedder"):
        Embedder(network)
    with pytest.raises(TypeError, match=r"preprocess must be a Preprocess, got \(3, 16, 16\)"):
        Embedder(network, (3, 16, 16))
    with pytest.raises(ValueError, match=r"must give \(B, D\) embeddings, got shape \(1, 3, 4, 4\)"):
        Embedder(nn.Identity(), Preprocess(3, 4, 4))
    broken = Conv4(in_channels=3, filters=4)
    nn.init.constant_(broken[0][0].weight, torch.nan)
    with pytest.raises(ValueError, match="gives embeddings that are not finite"):
        Embedder(broken, Preprocess(3, 16, 16))
    with pytest.raises(FileNotFoundError, match="holds no network"):
        Embedder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"images": 3}))
    with warnings.catch_warnings(), pytest.raises(FileNotFoundError, match="holds no network yet"):
        Embedder(tmp_path)
