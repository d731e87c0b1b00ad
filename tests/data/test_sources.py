"""Pictures that were changed in place are noticed; times alone are no change."""

import json
import logging
import os
import shutil
import time

import numpy as np
import pytest
from pictures import class_folders, write

from rankshot import data
from rankshot.data.loading import is_prepared_in
from rankshot.data.sources import SOURCES, files_of
from rankshot.training import TrainConfig


def test_a_picture_that_was_changed_in_place(tmp_path, caplog):
    """Of finding 7: its old pixels were kept."""
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    before = data.prepared(str(source), root)
    folder_time = os.stat(source / "c0").st_mtime_ns
    write(source / "c0" / "0.png", seed=99)
    os.utime(source / "c0", ns=(folder_time, folder_time))
    with caplog.at_level(logging.INFO):
        after = data.prepared(str(source), root)
    assert after != before
    assert f"1 image has changed, 0 are new, 0 are gone since {before.name} was prepared" in caplog.text
    old, new = ([data.load(place.name, split, root).images for split in ("trainval", "test")] for place in (before, after))
    assert sum(int((np.asarray(a) != np.asarray(b)).any((1, 2, 3)).sum()) for a, b in zip(old, new, strict=True)) == 1
    assert data.prepared(str(source), root) == after


def test_of_the_same_size_and_name(tmp_path):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    before = data.prepared(str(source), root)
    path = source / "c1" / "1.png"
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    assert data.prepared(str(source), root) != before


def test_times_alone_are_no_change(tmp_path, caplog):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    before = data.prepared(str(source), root)
    for path in source.rglob("*.png"):
        os.utime(path, ns=(time.time_ns(), 7))
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert data.prepared(str(source), root) == before
    assert caplog.text == ""
    noted = json.loads((before / SOURCES).read_text())["files"]
    assert {each[1] for each in noted.values()} == {7}  # so that nothing is compared again


def test_what_is_not_told_is_prepared_anew(tmp_path):
    """A folder of an earlier version, or one whose record is damaged, stays usable by its name."""
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    before = data.prepared(str(source), root)
    (before / SOURCES).write_text("[]")
    write(source / "c0" / "0.png", seed=99)
    assert data.prepared(str(source), root) != before
    assert len(data.load(before.name, "train", root)) > 0


@pytest.mark.parametrize("text", ["path,label\na.png,x\n", "no header", 'path\n"unclosed', "path,label\n\0,x\n"])
def test_files_that_a_csv_names(tmp_path, text):
    write(tmp_path / "a.png")
    (tmp_path / "l.csv").write_text(text)
    found = files_of(tmp_path / "l.csv")
    assert found.base == tmp_path
    assert set(found.states) == {"l.csv"} | ({"a.png"} if "a.png" in text else set())


def test_whether_it_is_prepared_is_told_without_writing(tmp_path, drawn):
    source, root = class_folders(tmp_path / "mine"), tmp_path / "root"
    names = [str(source), "glyphs", "omniglot", "nothing"]
    assert [is_prepared_in(name, root) for name in names] == [False] * 4
    assert not root.exists()
    place = data.prepared(str(source), root)
    shutil.copytree(drawn, root / "glyphs" / drawn.name)
    assert [is_prepared_in(name, root) for name in (*names, place.name)] == [True, True, False, False, True]


def test_a_config_from_elsewhere_does_not_say_where_to_write(tmp_path, caplog, drawn):
    """Of finding 1: its `root` was filled with prepared data."""
    (tmp_path / "config.json").write_text(json.dumps({"data": "glyphs", "root": str(tmp_path / "x")}))
    with caplog.at_level(logging.INFO):
        assert TrainConfig.from_json(tmp_path / "config.json").data.root is None
    assert "which is left aside; --root names one" in caplog.text
    assert not (tmp_path / "x").exists()
    shutil.copytree(drawn, tmp_path / "x" / "glyphs" / drawn.name)
    assert TrainConfig.from_json(tmp_path / "config.json").data.root == str(tmp_path / "x")
