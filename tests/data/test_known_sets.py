"""Omniglot, mini-ImageNet and CUB, the real ones, as their users have them."""

import csv
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rankshot import data
from rankshot.data import cub, loading, mini_imagenet, omniglot
from rankshot.data.decoding import decode
from rankshot.data.preparing import prepare
from rankshot.data.trees import open_tree
from rankshot.preprocess import Preprocess


@pytest.fixture(scope="module")
def omniglot_zips(shared):
    return [shared / "omniglot" / f"images_{part}.zip" for part in ("background", "evaluation")]


@pytest.fixture(scope="module")
def omniglot_trees(omniglot_zips):
    return [open_tree(path) for path in omniglot_zips]


@pytest.fixture
def in_memory(tmp_path):
    """A folder for many small files, which disks are slow to make."""
    memory = Path("/dev/shm")
    is_large = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    with tempfile.TemporaryDirectory(dir=memory if is_large else tmp_path) as folder:
        yield Path(folder)


def names(listing, *splits):
    return [each.name for each in listing.classes if each.split in splits]


class TestOmniglot:
    def test_the_split_is_that_of_vinyals(self, shared, omniglot_trees):
        listing = omniglot.listing(omniglot_trees[::-1])
        assert all(len(each.pictures) == 20 for each in listing.classes)
        for split, parts in {"train": ["train"], "val": ["val"], "test": ["test"], "trainval": ["train", "val"]}.items():
            lines = (shared / "omniglot" / "split" / f"{split}.txt").read_text().split()
            expected = {line.rpartition("/")[0] for line in lines}  # each character four times, turned
            assert set(names(listing, *parts)) == expected
            assert (
                len(names(listing, *parts))
                == len(expected)
                == {"train": 1028, "val": 172, "test": 423, "trainval": 1200}[split]
            )

    @pytest.mark.slow  # 32,460 files
    def test_unpacked_folders_and_pixels(self, omniglot_zips, in_memory, tmp_path):
        for path in omniglot_zips:
            zipfile.ZipFile(path).extractall(in_memory / "omniglot")
        from_folder = omniglot.listing([open_tree(in_memory / "omniglot")])
        from_zips = omniglot.listing([open_tree(path) for path in omniglot_zips])
        assert [(each.name, each.split) for each in from_folder.classes] == [
            (each.name, each.split) for each in from_zips.classes
        ]
        folder = data.prepared("omniglot", tmp_path / "root", sources=[in_memory / "omniglot"])
        sets = {split: data.load("omniglot", split, tmp_path / "root") for split in ("train", "val", "test")}
        assert sum(map(len, sets.values())) == 32460
        assert folder == tmp_path / "root" / "omniglot"
        train = sets["train"]
        assert train.images.shape[1:] == (1, 28, 28)
        assert 0.05 < (train.images > 127).mean() < 0.2  # ink is bright, and there is little of it
        assert len(train.with_rotations().classes) == 4 * 1028
        both = [open_tree(in_memory / "omniglot" / f"images_{part}") for part in ("background", "evaluation")]
        assert len(omniglot.listing(both).classes) == 1623

    def test_the_folder_that_the_zips_lie_in(self, omniglot_zips, tmp_path):
        (folder,) = {path.parent for path in omniglot_zips}
        listing = loading._named("omniglot", [folder], {}, tmp_path)
        assert {tree.path.name for tree in listing.trees} == {path.name for path in omniglot_zips}

    def test_given_twice(self, omniglot_trees):
        with pytest.raises(ValueError, match=r"Omniglot has 20 images of .*, but 40 were found"):
            omniglot.listing([*omniglot_trees, omniglot_trees[1]])

    def test_a_part_is_missing(self, omniglot_trees):
        with pytest.raises(
            ValueError, match=r"1623 characters, but 964 were found; images_evaluation is missing\.\n(.*\n)*Download"
        ):
            omniglot.listing(omniglot_trees[:1])


@pytest.fixture(scope="module")
def trees(shared):
    return [open_tree(shared / "mini-imagenet" / f"images-{number}.zip") for number in range(3)]


@pytest.fixture(scope="module")
def tables(shared):
    return [(str(path), path.read_text()) for path in sorted((shared / "mini-imagenet").glob("*.csv"))]


class TestMiniImageNet:
    def test_with_the_csv_files_and_without(self, shared, trees, tables):
        with_tables, without = mini_imagenet.listing(trees, tables), mini_imagenet.listing(trees)
        for listing in (with_tables, without):
            for split, count in (("train", 38_400), ("val", 9_600), ("test", 12_000)):
                with (shared / "mini-imagenet" / f"{split}.csv").open() as file:
                    expected = {row["label"] for row in csv.DictReader(file)}
                assert set(names(listing, split)) == expected
                assert sum(len(each.pictures) for each in listing.classes if each.split == split) == count
        assert [set(each.pictures) for each in with_tables.classes] == [set(each.pictures) for each in without.classes]

    def test_class_folders(self, tmp_path):
        for split, wnids in mini_imagenet.WNIDS.items():
            for wnid in wnids:
                path = tmp_path / split / wnid / "photo.jpg"
                path.parent.mkdir(parents=True)
                path.write_bytes(b"")
        listing = mini_imagenet.listing([open_tree(tmp_path)])
        assert [len(names(listing, split)) for split in ("train", "val", "test")] == [64, 16, 20]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                lambda text: text.replace("filename,label", "file,class"),
                r"train.csv must begin with the line filename,label",
            ),
            (
                lambda text: text.replace("n0153282900000005", "n0153282900009999"),
                r"train.csv names 'n0153282900009999.jpg', which is not",
            ),
            (
                lambda text: text.replace(",n01532829", ",n01855672"),
                r"train.csv has class 'n01855672', which is not of the split",
            ),
        ],
    )
    def test_csv_files_with_mistakes(self, trees, tables, change, message):
        wrong = [(name, change(text)) if name.endswith("train.csv") else (name, text) for name, text in tables]
        with pytest.raises(ValueError, match=message):
            mini_imagenet.listing(trees, wrong)

    def test_a_part_is_missing(self, trees):
        with pytest.raises(ValueError, match="100 classes, but 68 are missing"):
            mini_imagenet.listing(trees[:1])


class TestCub:
    def test_the_splits(self, shared, tmp_path):
        tree = open_tree(shared / "cub" / "cub-bbox64.zip")
        listing = cub.listing([tree])
        for split, count in (("train", 5894), ("val", 2961), ("test", 2933)):
            expected = (shared / "cub" / "split" / f"{split}classes.txt").read_text().split()
            assert names(listing, split) == sorted(expected)
            assert sum(len(each.pictures) for each in listing.classes if each.split == split) == count
        retrieval = cub.listing([tree], "cub-retrieval")
        assert [int(name[:3]) for name in names(retrieval, "train")] == list(range(1, 101))
        assert [int(name[:3]) for name in names(retrieval, "test")] == list(range(101, 201))

    def test_crops_of_the_original_download(self, shared):
        """48 original photographs, cut to their boxes here, against crops that were made elsewhere."""
        tree = open_tree(shared / "cub" / "CUB_200_2011-sample.zip")
        listing = cub.listing([tree], partial=True)
        pictures = [picture for each in listing.classes for picture in each.pictures]
        assert len(pictures) == 48
        ready = zipfile.ZipFile(shared / "cub" / "cub-bbox64.zip")
        contents = dict(tree.read([picture.name for picture in pictures]))
        for picture in pictures:
            crop = decode(contents[picture.name], Preprocess(3, 64, 64), picture.box).astype(int)
            other = decode(ready.read(picture.name.removeprefix("CUB_200_2011/")), Preprocess(3, 64, 64)).astype(int)
            assert np.abs(crop - other).mean() <= 5, picture.name
        whole = cub.listing([tree], crop=False, partial=True)
        assert all(picture.box is None for each in whole.classes for picture in each.pictures)

    def test_the_original_as_a_tgz(self, shared, tmp_path):
        zipfile.ZipFile(shared / "cub" / "CUB_200_2011-sample.zip").extractall(tmp_path)
        with tarfile.open(tmp_path / "CUB_200_2011.tgz", "w:gz") as archive:
            archive.add(tmp_path / "CUB_200_2011", "CUB_200_2011")
        from_tar = cub.listing([open_tree(tmp_path / "CUB_200_2011.tgz")], partial=True)
        from_zip = cub.listing([open_tree(shared / "cub" / "CUB_200_2011-sample.zip")], partial=True)
        assert from_tar.classes == from_zip.classes
        one, other = (prepare(listing, tmp_path / name) for listing, name in ((from_tar, "one"), (from_zip, "other")))
        assert one["sha256"] == other["sha256"]

    def test_mistakes(self, shared, tmp_path):
        with pytest.raises(ValueError, match="200 classes, but 8 were found"):
            cub.listing([open_tree(shared / "cub" / "CUB_200_2011-sample.zip")])
        zipfile.ZipFile(shared / "cub" / "CUB_200_2011-sample.zip").extractall(tmp_path)
        boxes = tmp_path / "CUB_200_2011" / "bounding_boxes.txt"
        first, *others = boxes.read_text().splitlines()
        boxes.write_text("\n".join(others))
        with pytest.raises(ValueError, match=r"bounding_boxes.txt has no box for .*Black_Footed_Albatross_0046_18.jpg"):
            cub.listing([open_tree(tmp_path)], partial=True)
        boxes.write_text(f"{first} and more\n")
        with pytest.raises(
            ValueError, match=r"bounding_boxes.txt: cannot read the line '1 60.0 27.0 325.0 304.0 and more'"
        ):
            cub.listing([open_tree(tmp_path)], partial=True)
