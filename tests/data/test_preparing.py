"""Prepared data is what a plain loop decodes, there whole or not at all; what cannot be read is named."""

import errno
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from forked import CONTEXT, Started
from pictures import class_folders, encoded, pixels

from rankshot import data
from rankshot.data import folder, store
from rankshot.data.decoding import decode
from rankshot.data.preparing import prepare
from rankshot.preprocess import Preprocess


@pytest.fixture
def source(tmp_path):
    return class_folders(tmp_path / "source")


def prepared(source, place, **options):
    manifest = prepare(folder.listing(source, size=16), place, **options)
    return manifest, {split: store.open_split(place, split) for split in ("train", "val", "test", "trainval")}


def test_against_a_plain_loop(source, tmp_path):
    told = []
    manifest, sets = prepared(source, tmp_path / "cache", progress=lambda *count: told.append(count))
    assert told == [(done, 24) for done in range(1, 25)]
    assert manifest["images"] == 24
    assert manifest["skipped"] == []
    assert manifest["source"] == [str(source)]
    assert sorted(name for split in ("train", "val", "test") for name in sets[split].classes) == [f"c{n}" for n in range(6)]
    assert sets["trainval"].classes == sets["train"].classes + sets["val"].classes
    for images in sets.values():
        assert isinstance(images.images, np.memmap)
        for label, name in enumerate(images.classes):
            mine = images.images[images.labels == label]
            expected = [decode((source / name / f"{n}.png").read_bytes(), Preprocess(3, 16, 16)) for n in range(4)]
            assert np.array_equal(mine, expected)


def test_what_cannot_be_read_is_left_out_and_listed(source, tmp_path):
    (source / "c1" / "1.png").write_bytes(b"no image")
    (source / "c4" / "0.png").write_bytes(encoded(pixels())[:50])
    (source / "c4" / "5.png").symlink_to(source / "gone.png")
    manifest, sets = prepared(source, tmp_path / "cache")
    assert manifest["images"] == 22
    assert sorted(each["file"] for each in manifest["skipped"]) == [
        str(source / name) for name in ("c1/1.png", "c4/0.png", "c4/5.png")
    ]
    assert all(each["why"] for each in manifest["skipped"])
    for split in ("train", "val", "test"):
        for label, name in enumerate(sets[split].classes):
            mine = sets[split].images[sets[split].labels == label]
            kept = [n for n in range(4) if (name, n) not in (("c1", 1), ("c4", 0))]
            assert np.array_equal(
                mine, [decode((source / name / f"{n}.png").read_bytes(), Preprocess(3, 16, 16)) for n in kept]
            )
    store.verify(tmp_path / "cache")


def test_strict_stops_at_the_first(source, tmp_path):
    (source / "c1" / "1.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"c1/1.png is no image that can be read: "):
        prepared(source, tmp_path / "cache", strict=True)
    assert sorted(os.listdir(tmp_path)) == ["source"]
    (source / "c1" / "1.png").unlink()
    (source / "c1" / "1.png").symlink_to(source / "gone.png")
    with pytest.raises(ValueError, match=r"c1/1.png: No such file"):
        prepared(source, tmp_path / "cache", strict=True)


def test_a_class_of_which_nothing_can_be_read(source, tmp_path):
    for number in range(4):
        (source / "c2" / f"{number}.png").write_bytes(b"")
    with pytest.raises(ValueError, match="no image of class 'c2' can be read"):
        prepared(source, tmp_path / "cache")
    assert sorted(os.listdir(tmp_path)) == ["source"]


def test_older_and_damaged(source, tmp_path):
    place = tmp_path / "cache"
    prepared(source, place)
    assert store.verify(place)["images"] == 24
    content = bytearray((place / "images.bin").read_bytes())
    content[1234] ^= 1
    (place / "images.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"images.bin is not as it was prepared: delete .*cache and prepare it again"):
        store.verify(place)
    (place / "images.bin").write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"images.bin is cut short: \d+ bytes instead of \d+"):
        store.open_split(place, "train")
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "format": 0}))
    with pytest.raises(ValueError, match=r"cache was prepared in format 0, and this is 1: delete it"):
        store.open_split(place, "train")
    (place / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match=r"manifest.json is damaged"):
        store.open_split(place, "train")


def test_a_changed_manifest(source, tmp_path):
    place = tmp_path / "cache"
    prepared(source, place)
    path = place / "manifest.json"
    path.write_text(path.read_text().replace('"split": "test"', '"split": "val"'))
    with pytest.raises(ValueError, match=r"manifest.json is not as it was prepared"):
        store.verify(place)
    path.write_text('{"format": 1}')
    with pytest.raises(ValueError, match=r"manifest.json is damaged"):
        store.open_split(place, "train")
    path.unlink()
    with pytest.raises(ValueError, match=r"cache has no manifest.json: delete it and prepare it again"):
        store.open_split(place, "train")


def test_splits_that_are_not_there(source, tmp_path):
    prepare(folder.listing(source, size=16), tmp_path / "cache")
    with pytest.raises(ValueError, match="source has no split 'dev': use 'train', 'val', 'test', 'trainval'"):
        store.open_split(tmp_path / "cache", "dev")
    class_folders(tmp_path / "two", classes=2)
    prepare(folder.listing(tmp_path / "two", size=16), tmp_path / "cache2")
    with pytest.raises(store.NoClasses, match="two has no classes in split 'test', only in 'train'"):
        store.open_split(tmp_path / "cache2", "test")


def at_once(source, root):
    return str(data.prepared(str(source), root, size=16))


def test_two_processes_prepare_the_same(source, tmp_path):
    with CONTEXT.Pool(2) as pool:
        one, other = pool.starmap(at_once, [(source, tmp_path / "root")] * 2)
    assert one == other
    assert [each.name for each in (tmp_path / "root").iterdir()] == [os.path.basename(one)]
    store.verify(tmp_path / "root" / os.path.basename(one))


CODE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off
from rankshot import data
data.prepared(sys.argv[1], sys.argv[2], size=256)
"""


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """Pictures that take a while."""
    return class_folders(tmp_path_factory.mktemp("thousand") / "source", classes=20, per_class=50)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_there_is_no_half_cache(thousand, tmp_path, number):
    root = tmp_path / "root"
    started = Started(CODE, thousand, root)
    while started.process.is_alive() and not list(root.glob(".*/images.bin")):
        time.sleep(0.005)
    os.kill(started.process.pid, number)
    assert started.ended().returncode != 0
    assert [each.name for each in root.iterdir() if not each.name.startswith(".")] == []
    for left in root.glob(".*"):
        os.utime(left, (1, 1))  # long ago
    place = data.prepared(str(thousand), root, size=256)
    assert os.listdir(root) == [place.name]  # what was left half made is gone
    store.verify(place)


def test_a_full_disk(source, small_disk):
    disk = small_disk("8k")
    with pytest.raises(OSError, match="No space left") as caught:
        prepare(folder.listing(source, size=64), disk / "cache")
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(disk) == []


def test_no_permission_to_write(source, small_disk):
    disk = small_disk("1m")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(OSError, match="Read-only file system"):
        prepare(folder.listing(source, size=16), disk / "cache")


def test_nowhere_to_write(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        prepare(folder.listing(source), tmp_path / "file" / "cache")


def test_one_changed_byte_is_noticed_when_opened(source, tmp_path, monkeypatch):
    """By size and time first; a copy of the folder is compared once."""
    place = tmp_path / "cache"
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path))
    prepared(source, place)
    before = (place / "images.bin").stat()
    content = bytearray((place / "images.bin").read_bytes())
    content[1234] ^= 1
    (place / "images.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"images.bin is not as it was prepared"):
        store.open_split(place, "train")
    content[1234] ^= 1
    (place / "images.bin").write_bytes(content)
    assert len(store.open_split(place, "train")) > 0
    stamp = json.loads((place / "checked.json").read_text())
    assert stamp["time"] == (place / "images.bin").stat().st_mtime_ns != before.st_mtime_ns


def test_what_was_checked_is_not_noted_in_others_folders(source, tmp_path):
    """A config from elsewhere may say where data lies, and nothing is written there."""
    place = tmp_path / "cache"
    prepared(source, place)
    (place / "checked.json").unlink()
    store.CHECKED.clear()
    assert len(store.open_split(place, "train")) > 0
    assert not (place / "checked.json").exists()


def test_prepared_data_is_not_read_through_a_link(source, tmp_path):
    place = tmp_path / "cache"
    prepared(source, place)
    for name in ("images.bin", "manifest.json"):
        (place / name).rename(tmp_path / name)
        (place / name).symlink_to(tmp_path / name)
        with pytest.raises(OSError, match="is a link"):
            store.open_split(place, "train")
        (place / name).unlink()
        (tmp_path / name).rename(place / name)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": "abc"},
        {"shape": [1, 30_000, 30_000]},
        {"classes": [["a"]]},
        {"classes": [{"name": "a", "split": "train", "images": -1}]},
        {"classes": [{"name": "a", "split": "other", "images": 24}]},
        {"images": 2**60},
        {"skipped": 5},
        {"sha256": None},
    ],
)
def test_a_manifest_that_makes_no_sense(source, tmp_path, change):
    place = tmp_path / "cache"
    prepared(source, place)
    path = place / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=r"manifest.json is damaged: delete .* and prepare it again"):
        store.open_split(place, "train")
