"""Any data set by its name or its place, prepared on first use and found prepared after that."""

import json
import os

import numpy as np
import pytest
from pictures import class_folders, write
from small import small

from rankshot import data
from rankshot.data import downloading, mini_imagenet, preparing, store
from rankshot.data.loading import NAMES
from rankshot.report import protocol_for
from rankshot.training import train


def test_a_folder_of_ones_own(tmp_path, monkeypatch):
    source, root = class_folders(tmp_path / "my pictures"), tmp_path / "root"
    images = data.load(str(source), "train", root)
    assert images.images.shape[1:] == (3, 84, 84)
    assert data.load(source, "train", root).classes == images.classes  # a path is as good as its name
    monkeypatch.setattr(preparing, "decode", None)  # to decode again would fail
    again = data.load(str(source), "train", root)
    assert np.array_equal(again.images, images.images)
    monkeypatch.chdir(tmp_path)
    assert data.load("my pictures", "train", root).classes == images.classes  # and so is one from here


def test_a_folder_that_has_changed_is_prepared_again(tmp_path):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    before = data.prepared(str(source), root)
    write(source / "c0" / "new.png", seed=9)
    os.utime(source / "c0", (1, 1))
    after = data.prepared(str(source), root)
    assert before != after
    assert store.read_manifest(after)["images"] == store.read_manifest(before)["images"] + 1
    assert data.all_prepared(root) == sorted([before, after])


def test_what_is_behind_links_and_named_by_a_csv_may_change_too(tmp_path):
    class_folders(tmp_path / "real")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "loop").symlink_to(tmp_path / "mine")
    for number in range(6):
        (tmp_path / "mine" / f"c{number}").symlink_to(tmp_path / "real" / f"c{number}")
    lines = [f"real/c{number}/0.png,c{number}" for number in range(6)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *lines]))
    before = [data.prepared(str(tmp_path / name), tmp_path / "root") for name in ("mine", "labels.csv")]
    write(tmp_path / "real" / "c2" / "0.png", seed=9)
    after = [data.prepared(str(tmp_path / name), tmp_path / "root") for name in ("mine", "labels.csv")]
    assert all(one != other for one, other in zip(before, after, strict=True))


def mini_imagenet_in(folder):
    """A picture of each class."""
    for wnids in mini_imagenet.WNIDS.values():
        for wnid in wnids:
            write(folder / "images" / f"{wnid}00000001.png")
    return folder


def test_options_make_another_preparation_with_a_name_of_its_own(tmp_path):
    root = tmp_path / "root"
    folder = data.prepared("mini-imagenet", root, sources=[mini_imagenet_in(tmp_path / "mini")], size=16)
    assert folder.name == "mini-imagenet-size16"
    assert data.load("mini-imagenet-size16", "val", root).images.shape == (16, 3, 16, 16)


@pytest.mark.parametrize("name", ["mini-imagenet", "cub", "cub-retrieval"])
def test_what_must_be_downloaded_first(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=rf"{name} is not prepared yet\.\n(.*\n)*.*rankshot data prepare"):
        data.load(name, root=tmp_path)


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "OMNIGLOT", "http://127.0.0.1:9/")  # nobody listens there
    with pytest.raises(FileNotFoundError, match=r"omniglot is not prepared yet, and cannot be downloaded: .*refused"):
        data.load("omniglot", root=tmp_path)


def test_unknown(tmp_path):
    with pytest.raises(ValueError, match=f"unknown data set 'omniglut': there is {', '.join(map(repr, NAMES))}, no folder"):
        data.load("omniglut", root=tmp_path)
    with pytest.raises(ValueError, match="glyphs has no option 'size'"):
        data.prepared("glyphs", tmp_path, size=32)
    with pytest.raises(ValueError, match="glyphs is drawn, not read from files"):
        data.prepared("glyphs", tmp_path, sources=[tmp_path])
    with pytest.raises(ValueError, match="omniglot has no option 'channels': there is 'size'"):
        data.prepared("omniglot", tmp_path, channels=1)


def test_a_path_is_its_own_source(tmp_path):
    source = class_folders(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"only 'omniglot', .* are read from elsewhere; .*mine' is none of them"):
        data.prepared(str(source), tmp_path / "root", sources=[source])
    with pytest.raises(ValueError, match="prepared data cannot lie within its source"):
        data.prepared(str(source), source / "root")


@pytest.mark.parametrize("size", [0, -5, 100_000])
def test_sizes(tmp_path, size):
    with pytest.raises(ValueError, match=f"height must be a whole number from 1 to 2048, got {size}"):
        data.prepared(str(class_folders(tmp_path / "mine")), tmp_path / "root", size=size)


def test_an_older_version_is_told(tmp_path):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    path = data.prepared(str(source), root) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    with pytest.raises(ValueError, match="was prepared in format 0"):
        data.load(str(source), root=root)


def test_what_was_left_out_is_told(tmp_path, caplog):
    source = class_folders(tmp_path / "mine", per_class=9)
    for number in range(7):
        (source / "c3" / f"{number}.png").write_bytes(b"")
    data.load(str(source), root=tmp_path / "root")
    assert caplog.text.count("left out") == 5
    assert "and 2 more: they are listed in" in caplog.text


def test_known_names_and_folders_of_that_name(tmp_path, monkeypatch):
    """mini-imagenet is the data set, ./mini-imagenet and mini-imagenet/ are folders."""
    here, root = tmp_path / "here", tmp_path / "root"
    class_folders(here / "mini-imagenet")
    monkeypatch.chdir(here)
    data.prepared("mini-imagenet", root, sources=[mini_imagenet_in(tmp_path / "mini")])
    assert len(data.load("mini-imagenet", "train", root).classes) == 64
    for name in ("./mini-imagenet", "mini-imagenet/"):
        assert set(data.load(name, "train", root).classes) <= {f"c{n}" for n in range(6)}


def test_a_cache_that_lost_its_images_is_told(tmp_path):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    place = data.prepared(str(source), root)
    (place / "images.bin").unlink()
    with pytest.raises(
        ValueError, match=r"images.bin is cut short: 0 bytes instead of \d+: delete .* and prepare it again"
    ):
        data.prepared(str(source), root)


def test_strict_about_what_is_prepared_already(tmp_path):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    (source / "c0" / "0.png").write_bytes(b"")
    data.prepared(str(source), root)
    with pytest.raises(ValueError, match=r"c0/0.png is no image that can be read"):
        data.prepared(str(source), root, strict=True)


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*nothing.zip"):
        data.prepared("cub", tmp_path, sources=[tmp_path / "nothing.zip"])


def test_mini_imagenet_in_a_folder(tmp_path):
    """images/ without csv files is listed once."""
    place = data.prepared("mini-imagenet", tmp_path / "root", sources=[mini_imagenet_in(tmp_path / "mini")])
    assert store.read_manifest(place)["images"] == 100


def test_folders_that_change_leak_nothing(tmp_path):
    """A class that was learned from is never measured as an unseen one."""
    source, root = class_folders(tmp_path / "mine", classes=10, per_class=8), str(tmp_path / "root")
    config = small(data=str(source), root=root, batch_size=16, updates=2, validation_episodes=2)
    train(config, tmp_path / "run")
    trained = set(data.load(str(source), "train", root).classes)
    for number in range(10, 30):  # until one of them has changed sides
        class_folders(tmp_path / "more", classes=1, per_class=8).joinpath("c0").rename(source / f"a{number}")
        if trained & set(data.load(str(source), "test", root).classes):
            break
    with pytest.raises(
        ValueError, match=r"run, or what it began with, has learned from 'c1': one of 1 classes that are in split 'test'"
    ):
        protocol_for([tmp_path / "run"], ways=(2,), shots=(1,))
    with pytest.raises(ValueError, match=r"has changed since .*run was begun: its training classes are others now"):
        train(config.changed(updates=4), tmp_path / "run", resume=True)
