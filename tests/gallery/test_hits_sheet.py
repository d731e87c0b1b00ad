"""A picture of what was found."""

import numpy as np
import pytest
from PIL import Image

from rankshot.gallery import Hit
from rankshot.gallery.hits_sheet import CAPTION, GAP, SIDE, hits_sheet


def test_the_sheet(tmp_path):
    Image.new("RGB", (30, 20), (200, 0, 0)).save(tmp_path / "red.png")
    hits = [Hit(str(tmp_path / "red.png"), 0.9, {}), Hit("gone.png", 0.8, {})]
    hits_sheet([tmp_path / "red.png"], hits, tmp_path / "out.png")
    pixels = np.asarray(Image.open(tmp_path / "out.png"))
    assert pixels.shape == (GAP + SIDE + CAPTION + GAP, GAP + 3 * (SIDE + GAP), 3)
    middle = [pixels[GAP + SIDE // 2, GAP + place * (SIDE + GAP) + SIDE // 2].tolist() for place in range(3)]
    assert middle == [[200, 0, 0], [200, 0, 0], [221, 221, 221]]


def test_more_than_a_picture_can_hold(tmp_path):
    with pytest.raises(ValueError, match=r"a sheet of 810 x 1,266,[0-9]+ pixels is too large"):
        hits_sheet([], [Hit(str(number), 0.9, {}) for number in range(50_000)], tmp_path / "out.png")
