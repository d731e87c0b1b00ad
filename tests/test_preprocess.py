"""How a picture becomes what a network sees, told in one value."""

import json

import numpy as np
import pytest
from pictures import encoded
from PIL import Image

from rankshot import Preprocess
from rankshot.data.decoding import decode, fitted
from rankshot.schema import checked

WIDE = np.zeros((20, 60, 3), np.uint8)
WIDE[:, :20], WIDE[:, 20:40], WIDE[:, 40:] = (255, 0, 0), (0, 255, 0), (0, 0, 255)  # red, green, blue


def seen(fit, height=20, width=20, **more):
    """The colours of the middle row, from left to right."""
    pixels = decode(encoded(WIDE), Preprocess(3, height, width, fit, **more))
    return pixels[:, height // 2].T


def test_stretch_shows_all_of_it_in_another_form():
    row = seen("stretch")
    assert [row[place].tolist() for place in (1, 10, 18)] == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]


def test_crop_shows_the_middle_of_it():
    assert seen("crop").tolist() == [[0, 255, 0]] * 20
    tall = decode(encoded(WIDE.transpose(1, 0, 2)), Preprocess(3, 20, 20, "crop"))
    assert (tall.reshape(3, -1).T == (0, 255, 0)).all()


@pytest.mark.parametrize("side", [28, 84, 224, 240])
def test_crop_stays_within_pictures_of_any_size(side):
    """29 / 28 * 28 is more than 29, and Pillow refuses a box that is larger than its picture."""
    for width in range(1, 300):
        for height in (width, width + 37):
            assert fitted(Image.new("L", (width, height)), Preprocess(1, side, side, "crop"), None).shape == (1, side, side)


@pytest.mark.parametrize(("invert", "background"), [(False, 0), (True, 0)])
def test_pad_shows_all_of_it_and_nothing_around(invert, background):
    """Paper is white: around what is inverted there is paper."""
    pixels = decode(encoded(WIDE), Preprocess(3, 60, 60, "pad", invert=invert))
    assert (pixels[:, :20] == background).all()
    assert (pixels[:, 40:] == background).all()
    inside = pixels[:, 20:40].transpose(1, 2, 0)
    assert np.abs(inside.astype(int) - (255 - WIDE if invert else WIDE)).max() <= 1


def test_pixels_between_pixels():
    small = np.array([[0, 255]], np.uint8)
    nearest, smooth = (
        decode(encoded(Image.fromarray(small)), Preprocess(1, 1, 4, interpolation=how)).tolist()
        for how in ("nearest", "bilinear")
    )
    assert nearest == [[[0, 0, 255, 255]]]
    assert 0 < smooth[0][0][1] < smooth[0][0][2] < 255


def test_there_and_back_as_json():
    wanted = Preprocess(3, 20, 30, "pad", "lanczos", (0.5, 0.4, 0.3), (0.2, 0.2, 0.2), invert=True)
    assert checked(json.loads(json.dumps(wanted.to_json())), Preprocess, "file") == wanted
    assert str(wanted) == "30x20 in colour, padded, lanczos, dark ink made bright, mean 0.3 0.4 0.5, deviation 0.2"
    assert str(Preprocess(1, 28, 28, "crop")) == "28x28 grey, cropped"
    assert wanted.shape == (3, 20, 30)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"channels": 0}, "preprocess: channels must be a whole number from 1 to 16, got 0"),
        ({"height": 16.0}, "preprocess: height must be a whole number from 1 to 2048, got 16.0"),
        ({"width": 2049}, "preprocess: width must be a whole number"),
        ({"fit": "squeeze"}, "preprocess: fit must be one of"),
        ({"mean": (0.5,)}, "preprocess: mean must have a number for each of 3 channels, or none"),
        ({"deviation": (1.0, 1.0, 0.0)}, r"preprocess: deviation\[2\] must be a number from 1e-06"),
        ({"mean": "abc"}, "preprocess: mean must be a list of numbers"),
    ],
)
def test_what_no_network_wants(settings, told):
    with pytest.raises(ValueError, match=told):
        Preprocess(**{"channels": 3, "height": 84, "width": 84, **settings})
    given = {"channels": 3, "height": 84, "width": 84, **settings}
    with pytest.raises(ValueError, match=r"preprocess|file: "):
        checked(given, Preprocess, "file")


def test_a_file_that_tells_more_or_less(tmp_path):
    with pytest.raises(ValueError, match="file: fitt must be 'fit', got 'fitt'"):
        checked({"channels": 3, "height": 84, "width": 84, "fitt": "pad"}, Preprocess, "file")
    with pytest.raises(ValueError, match="file: width must be there, got nothing"):
        checked({"channels": 3, "height": 84}, Preprocess, "file")
