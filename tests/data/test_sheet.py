"""The contact sheet shows what it should, where it should."""

import numpy as np
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


def test_long_names_keep_their_end():
    assert _short("short") == "short"
    assert _short("x" * 40 + "/character07") == "…" + "x" * 17 + "/character07"
