"""Images as people have them become the same pixels, whatever they come in; what is none is told."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from rankshot.data.decoding import Undecodable
from rankshot.gallery.pictures import Failure, decoded, pixels_of
from rankshot.preprocess import Preprocess

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
WANTED = Preprocess(3, 8, 8)


def as_file(folder, name="a.png", pixels=PIXELS):
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def test_every_way_to_have_an_image_is_the_same(tmp_path):
    path = as_file(tmp_path)
    ways = [path, str(path), path.read_bytes(), Image.fromarray(PIXELS), PIXELS, PIXELS / 255, torch.from_numpy(PIXELS)]
    for each in ways:
        assert np.array_equal(pixels_of(each, WANTED), PIXELS.transpose(2, 0, 1))
    assert np.array_equal(pixels_of(PIXELS.transpose(2, 0, 1), WANTED), PIXELS.transpose(2, 0, 1))


def test_grey_colour_size_and_ink(tmp_path):
    assert pixels_of(PIXELS, Preprocess(1, 4, 4)).shape == (1, 4, 4)
    assert pixels_of(PIXELS[..., 0], Preprocess(3, 8, 8)).shape == (3, 8, 8)
    white = np.full((20, 20), 255, np.uint8)
    assert not pixels_of(white, Preprocess(1, 8, 8, invert=True)).any()
    assert pixels_of(white[:8, :8][None], Preprocess(1, 8, 8, invert=True)).all()  # ready for the network: taken as it is
    assert pixels_of(Image.fromarray(white).convert("F"), Preprocess(1, 8, 8)).all()


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("nowhere.png", "No such file"),
        (b"no image", "no image, or of an unknown kind"),
        (np.zeros(5), r"an array of shape \(5,\) is no image"),
        (np.zeros((4, 4, 2, 2)), "is no image"),
        (np.full((9, 9, 3), 7.0), "must be from 0 to 1, got 7 to 7"),
        (np.full((9, 9, 3), np.nan), "must be from 0 to 1, got nan"),
        (np.zeros((9, 9, 3), np.int64), "pixels must be bytes, or floats from 0 to 1, got int64"),
    ],
    ids=["missing", "bytes", "vector", "four", "large", "nan", "whole"],
)
def test_what_is_no_image(image, message):
    with pytest.raises(Undecodable, match=message):
        pixels_of(image, WANTED)


def test_chunks_go_on_past_what_cannot_be_read(tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8 not really")
    content = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(content, "PNG")
    bomb = tmp_path / "bomb.png"
    bomb.write_bytes(content.getvalue())
    images = [as_file(tmp_path), broken, PIXELS, bomb, b"", PIXELS]
    chunks = list(decoded(iter(images), WANTED, at_once=2))
    assert [chunk[0] for chunk in chunks] == [[0], [2], [5]]
    failures = [failure for chunk in chunks for failure in chunk[2]]
    assert [each.name for each in failures] == [str(broken), str(bomb), "image 4"]
    assert "decompression bomb" in failures[1].why
    assert isinstance(failures[0], Failure)
    assert list(decoded([], WANTED, at_once=2)) == []


def test_arrays_that_are_ready_keep_their_places_among_others(tmp_path):
    ready = PIXELS.transpose(2, 0, 1)
    images = [ready, as_file(tmp_path), b"no image", ready / 255, 255 - ready]
    (places, pixels, failures), (more, last, _) = decoded(images, WANTED, at_once=4)
    assert (places, more) == ([0, 1, 3], [4])
    assert all(np.array_equal(each, ready) for each in pixels)
    assert np.array_equal(last[0], 255 - ready)
    assert [failure.name for failure in failures] == ["image 2"]
