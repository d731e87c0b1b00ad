"""The contact sheet shows what it should, where it should."""

import numpy as np
import pytest
from PIL import Image

from rankshot.data import ImageSet, contact_sheet
from rankshot.data.sheet import GAP, LABEL, _short


def test_rows_are_classes(tmp_path):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (30, 3, 70, 80), dtype=np.uint8)
    labels = np.repeat(np.arange(5), 6)
    contact_sheet(ImageSet(images, labels, tuple("abcde")), tmp_path / "sheet.png", classes=5, per_class=4)
    with Image.open(tmp_path / "sheet.png") as picture:
        sheet = np.asarray(picture)
    for row in range(5):
        for column in range(4):
            top, left = GAP + row * (70 + GAP), LABEL + column * (80 + GAP)
            assert np.array_equal(sheet[top : top + 70, left : left + 80].transpose(2, 0, 1), images[6 * row + column])
    assert (sheet[:, :LABEL] < 128).any()  # names


def test_small_images_are_enlarged_and_few_are_enough(tmp_path):
    images = np.zeros((3, 1, 28, 28), dtype=np.uint8)
    contact_sheet(ImageSet(images, np.array([0, 0, 1]), ("a", "b")), tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (LABEL + 12 * 60 + GAP, 2 * 60 + GAP)


@pytest.mark.parametrize("name", [".sheet.png.partial", "sheet.png.partial"])
def test_it_is_written_where_it_was_asked_for(tmp_path, name):
    """A link that the user names is followed, one that lies in wait is not."""
    images = ImageSet(np.zeros((3, 1, 28, 28), dtype=np.uint8), np.array([0, 0, 1]), ("a\x1b\udcff", "b"))
    (tmp_path / "precious").write_text("mine")
    (tmp_path / name).symlink_to(tmp_path / "precious")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sheet.png").symlink_to(tmp_path / "elsewhere" / "there.png")
    contact_sheet(images, tmp_path / "sheet.png")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "sheet.png").is_symlink()
    with Image.open(tmp_path / "elsewhere" / "there.png") as sheet:
        assert sheet.format == "PNG"
    with pytest.raises(ValueError, match=r"sheet.what has an unknown file extension: name a picture, such as sheet.png"):
        contact_sheet(images, tmp_path / "sheet.what")


def test_more_than_a_picture_can_hold(tmp_path):
    many = ImageSet(np.broadcast_to(np.uint8(0), (500, 3, 84, 84)), np.arange(500), tuple(map(str, range(500))))
    with pytest.raises(ValueError, match=r"a sheet of 44,224 x 44,004 pixels is too large, 100,000,000 are the most"):
        contact_sheet(many, tmp_path / "sheet.png", classes=500, per_class=500)
    for options in ({"classes": 0}, {"classes": 10**30}, {"per_class": 0}, {"per_class": 501}):
        (name,) = options
        with pytest.raises(ValueError, match=f"^{name} must be a whole number from 1 to 500, got"):
            contact_sheet(many, tmp_path / "sheet.png", **options)
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to 4,294,967,295, got -1"):
        contact_sheet(many, tmp_path / "sheet.png", seed=-1)


def test_a_path_may_be_a_text(tmp_path):
    images = ImageSet(np.zeros((3, 1, 28, 28), dtype=np.uint8), np.array([0, 0, 1]), ("a", "b"))
    contact_sheet(images, str(tmp_path / "sheet.png"))
    assert (tmp_path / "sheet.png").is_file()


def test_long_names_keep_their_end():
    assert _short("short") == "short"
    assert _short("x" * 40 + "/character07") == "…" + "x" * 17 + "/character07"
