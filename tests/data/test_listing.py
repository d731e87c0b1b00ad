"""A listing makes sense before anything is decoded."""

import pytest

from rankshot.data.listing import ClassListing, Listing, Picture, by_folder, split_by_split
from rankshot.preprocess import Preprocess

ONE = (Picture(0, "a/1.png"),)


def listing(*classes):
    return Listing("mine", [], classes, Preprocess(1, 8, 8))


def test_folders():
    assert by_folder(["a/1.png", "a/2.JPG", "a/notes.txt", "b/c/3.webp", "4.gif"]) == {
        "a": ["a/1.png", "a/2.JPG"],
        "b/c": ["b/c/3.webp"],
        ".": ["4.gif"],
    }


def test_splits_come_in_order():
    classes = [
        ClassListing(name, split, ONE) for name, split in (("a", "test"), ("b", "train"), ("c", "val"), ("d", "train"))
    ]
    assert [each.name for each in split_by_split(classes)] == ["b", "d", "c", "a"]
    with pytest.raises(ValueError, match="split by split"):
        listing(*classes)


def test_mistakes():
    with pytest.raises(ValueError, match="mine: there are no classes"):
        listing()
    with pytest.raises(ValueError, match="mine: class 'a' has no images"):
        listing(ClassListing("a", "train", ()))
    with pytest.raises(ValueError, match="mine: classes 'Cat', 'cat' differ by upper and lower case only"):
        listing(ClassListing("Cat", "train", ONE), ClassListing("dog", "train", ONE), ClassListing("cat", "val", ONE))
