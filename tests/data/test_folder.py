"""Anyone's images: class folders, splits, archives, csv files; and the mistakes people make."""

import shutil
import zipfile

import pytest
from pictures import class_folders, write

from rankshot.data import folder


def classes(listing):
    return {each.name: (each.split, len(each.pictures)) for each in listing.classes}


def test_class_folders(tmp_path):
    listing = folder.listing(class_folders(tmp_path / "mine", classes=10))
    found = classes(listing)
    assert found.keys() == {f"c{n}" for n in range(10)}
    splits = [split for split, _ in found.values()]
    assert [splits.count(split) for split in ("train", "val", "test")] == [6, 2, 2]
    assert listing.preprocess.shape == (3, 84, 84)
    assert listing.name == "mine"
    assert classes(folder.listing(tmp_path / "mine")) == found  # the same seed
    assert any(classes(folder.listing(tmp_path / "mine", seed=seed)) != found for seed in (1, 2, 3))


def test_a_few_classes(tmp_path):
    for count, expected in ((2, [2, 0, 0]), (3, [3, 0, 0]), (4, [2, 0, 2]), (5, [3, 0, 2]), (6, [2, 2, 2]), (9, [5, 2, 2])):
        splits = [each.split for each in folder.listing(class_folders(tmp_path / str(count), classes=count)).classes]
        assert [splits.count(split) for split in ("train", "val", "test")] == expected


def test_a_single_split_is_a_split(tmp_path):
    class_folders(tmp_path / "mine" / "train", classes=3)
    assert classes(folder.listing(tmp_path / "mine")) == {f"c{n}": ("train", 4) for n in range(3)}


def test_split_folders(tmp_path):
    for split, count in (("train", 3), ("val", 2), ("test", 1)):
        class_folders(tmp_path / "mine" / split, classes=count)
        for label in range(count):
            shutil.move(tmp_path / "mine" / split / f"c{label}", tmp_path / "mine" / split / f"{split}{label}")
    found = classes(folder.listing(tmp_path / "mine"))
    assert found == {
        f"{split}{n}": (split, 4) for split, count in (("train", 3), ("val", 2), ("test", 1)) for n in range(count)
    }


def test_a_zip_with_one_folder_around_everything(tmp_path):
    class_folders(tmp_path / "animals")
    path = tmp_path / "animals.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in (tmp_path / "animals").rglob("*.png"):
            archive.write(file, file.relative_to(tmp_path))
    assert classes(folder.listing(path)) == classes(folder.listing(tmp_path / "animals"))


def test_deep_folders_are_classes_by_their_path(tmp_path):
    write(tmp_path / "birds" / "owl" / "1.png")
    write(tmp_path / "birds" / "jay" / "1.png")
    write(tmp_path / "fish" / "1.png")
    assert classes(folder.listing(tmp_path)).keys() == {"birds/owl", "birds/jay", "fish"}


def test_csv(tmp_path):
    class_folders(tmp_path / "files")
    path = tmp_path / "labels.csv"
    path.write_text("path,label,split\nfiles/c0/0.png,cat,train\nfiles/c0/1.png,cat,train\nfiles/c1/0.png,dog,test\n")
    assert classes(folder.listing(path)) == {"cat": ("train", 2), "dog": ("test", 1)}
    path.write_text("﻿label,path\ncat,files/c0/0.png\ndog,files/c1/0.png\nfox,files/c2/0.png\n", encoding="utf-8")
    assert [split for split, _ in classes(folder.listing(path)).values()] == ["train"] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "file,label\n",
            r"labels.csv must begin with the line path,label or path,label,split; it begins with \['file', 'label'\]",
        ),
        ("", "must begin with the line path,label"),
        ("path,label\n", "labels.csv tells of no images"),
        ("path,label\nc0/0.png,cat\nc0/9.png,cat\n", "line 3: there is no file 'c0/9.png' in"),
        ("path,label\nc0/0.png,\n", "line 2: path and label must both be given"),
        ("path,label,split\nc0/0.png,cat,dev\n", "line 2: unknown split 'dev': use 'train', 'val' or 'test'"),
        ("path,label,split\nc0/0.png,cat,train\nc1/0.png,dog,\n", "some lines tell a split and others do not"),
        ("path,label\nlabels.csv,cat\n", "line 2: 'labels.csv' is no image file"),
        ("path,label,split\nc0/0.png,cat,train\nc1/0.png,Cat,train\n", "'Cat', 'cat' differ by upper and lower case only"),
        ("path,label,split\nc0/0.png,cat,train\nc1/0.png,cat,test\n", "class 'cat' is in two splits, 'train' and 'test'"),
        ("path,label\nc0/0.png,cat\nc0/0.png,dog\n", "line 3: 'c0/0.png' was there before"),
        ("path,label\n" + "x" * 200_000 + ",cat\n", "labels.csv is no csv file: field larger"),
    ],
)
def test_csv_files_with_mistakes(tmp_path, text, message):
    class_folders(tmp_path)
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        folder.listing(tmp_path / "labels.csv")


@pytest.mark.parametrize("names", [("train", "validation"), ("train", "val", "extra"), ("Train", "Test")])
def test_folders_that_look_like_splits(tmp_path, names):
    for name in names:
        class_folders(tmp_path / "mine" / name, classes=2)
    with pytest.raises(ValueError, match="look like splits: name them train, val and test, with nothing beside"):
        folder.listing(tmp_path / "mine")


def test_a_csv_that_is_not_utf8(tmp_path):
    (tmp_path / "labels.csv").write_bytes("path,label\né.png,é\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"labels.csv is not UTF-8"):
        folder.listing(tmp_path / "labels.csv")


def test_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*nothing"):
        folder.listing(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty holds no images; expected are folders with one class each"):
        folder.listing(tmp_path / "empty")
    write(tmp_path / "flat" / "1.png")
    with pytest.raises(ValueError, match=r"flat: 1.png lies in no class"):
        folder.listing(tmp_path / "flat")
    class_folders(tmp_path / "mine")
    (tmp_path / "mine" / "otter").mkdir()
    with pytest.raises(ValueError, match=r"otter holds no images: delete it, or put the images of its class there"):
        folder.listing(tmp_path / "mine")
    class_folders(tmp_path / "deep" / "train")
    (tmp_path / "deep" / "train" / "otter").mkdir()
    with pytest.raises(ValueError, match=r"deep/train/otter holds no images"):
        folder.listing(tmp_path / "deep")
    class_folders(tmp_path / "cases")
    shutil.copytree(tmp_path / "cases" / "c1", tmp_path / "cases" / "C1")
    with pytest.raises(ValueError, match="classes 'C1', 'c1' differ by upper and lower case only"):
        folder.listing(tmp_path / "cases")


def test_classes_with_too_few_images_are_named(tmp_path, caplog):
    class_folders(tmp_path / "mine")
    write(tmp_path / "mine" / "lonely" / "1.png")
    folder.listing(tmp_path / "mine")
    assert "class 'lonely' has a single image: it has no other of its class to rank" in caplog.text
