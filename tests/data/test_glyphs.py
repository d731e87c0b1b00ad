"""The embedded data set: real characters, no look-alikes, the same bytes every time."""

import json
import unicodedata

import numpy as np
import pytest
from forked import CONTEXT
from PIL import Image, ImageFilter

from rankshot import data
from rankshot.data import glyphs
from rankshot.data.alphabets import ALPHABETS

CHARACTERS = [character for _, _, characters in ALPHABETS for character in characters]


def test_classes_and_splits():
    assert len(CHARACTERS) == len(set(CHARACTERS)) >= 400
    assert {split for split, _, _ in ALPHABETS} == set(glyphs.SPLITS)
    assert len({alphabet for _, alphabet, _ in ALPHABETS}) == len(ALPHABETS)  # an alphabet is in one split only
    assert all(unicodedata.category(each)[0] in "LNS" for each in CHARACTERS)
    assert len(glyphs.classes_of("test")) >= 100
    assert all(glyphs.fonts_with(each) for each in CHARACTERS)


def test_no_two_classes_look_alike():
    """Upright, in one font, at one size, slightly blurred: no two correlate by more than 0.85."""

    def outline(character):
        upright = glyphs._centred(character, glyphs._font("DejaVuSans.ttf"), stroke=0)
        small = upright.filter(ImageFilter.GaussianBlur(4)).resize((28, 28), Image.Resampling.BOX)
        values = np.asarray(small, dtype=np.float64).ravel()
        values -= values.mean()
        return values / np.linalg.norm(values)

    outlines = np.stack([outline(each) for each in CHARACTERS])
    likeness = outlines @ outlines.T - np.eye(len(CHARACTERS))
    one, other = np.unravel_index(likeness.argmax(), likeness.shape)
    assert likeness.max() < 0.85, f"{CHARACTERS[one]} and {CHARACTERS[other]}"


def test_bytes_depend_on_the_seed_alone():
    def drawn(seed):
        return [glyphs.draw(character, drawer, seed) for character in "Aקᐂ∞" for drawer in range(5)]

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert all((one == two).all() for one, two in zip(first, again, strict=True))
    assert not any((one == two).all() for one, two in zip(first, other, strict=True))
    assert len({image.tobytes() for image in first}) == len(first)  # no two drawers draw alike
    for image in first:
        assert image.shape == (28, 28)
        assert image.max() > 200  # ink
        assert (image < 60).mean() > 0.3  # and paper


@pytest.mark.slow
def test_another_process_draws_the_same():
    with CONTEXT.Pool(1) as pool:
        there = pool.apply(glyphs.draw, ("Ψ", 7, 0))
    assert (there == glyphs.draw("Ψ", 7, 0)).all()


def test_loading_draws_once_and_maps_the_file(tmp_path, monkeypatch):
    """Of an alphabet each split: all of them take many seconds."""
    few = {split: alphabet for split, *alphabet in reversed(ALPHABETS) if split != "test" or alphabet[0] == "Hebrew"}
    monkeypatch.setattr(glyphs, "ALPHABETS", [(split, *alphabet) for split, alphabet in few.items()])
    sets = {split: data.load("glyphs", split, root=tmp_path) for split in glyphs.SPLITS}
    for split, images in sets.items():
        assert len(images) == 20 * len(images.classes) == 20 * len(glyphs.classes_of(split))
        assert images.images.shape[1:] == (1, 28, 28)
        assert isinstance(images.images, np.memmap)
        assert (np.bincount(images.labels) == 20).all()
    names = [name for images in sets.values() for name in images.classes]
    assert len(set(names)) == len(names)

    test = sets["test"]
    number = test.classes.index("Hebrew/U+05E7")
    np.testing.assert_array_equal(test.images[test.labels == number][3, 0], glyphs.draw("ק", 3, seed=0))

    (folder,) = (tmp_path / "glyphs").iterdir()  # and nothing half made beside it
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["images"] == sum(map(len, sets.values()))
    assert manifest["options"].keys() == {"pillow", "freetype", "seed", "v"}
    assert len(data.load("glyphs", "trainval", root=tmp_path)) == len(sets["train"]) + len(sets["val"])
    assert data.load("glyphs", "all", root=tmp_path).classes == sum((sets[name].classes for name in sets), ())

    monkeypatch.setattr(glyphs, "draw", None)  # drawing again would fail
    again = data.load("glyphs", "test", root=tmp_path)
    np.testing.assert_array_equal(test.images, again.images)


def test_interrupted_drawing_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(glyphs, "draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.load("glyphs", root=tmp_path)
    assert list((tmp_path / "glyphs").iterdir()) == []


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown data set 'glyph': there is 'glyphs'"):
        data.load("glyph")
    with pytest.raises(ValueError, match="glyphs has no split 'training': use 'train', 'val', 'test', 'trainval'"):
        data.load("glyphs", "training")
