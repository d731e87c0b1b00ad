"""Prepared data is there whole or not at all, and where one said."""

import sys
from pathlib import Path

import pytest

from rankshot.cache import made_whole, root_of


def test_root(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "named"))
    assert root_of(tmp_path) == tmp_path
    assert root_of() == tmp_path / "named"
    monkeypatch.delenv("RANKSHOT_DATA")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert root_of() == tmp_path / "xdg" / "rankshot"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert root_of() == Path.home() / ".cache" / "rankshot"


def test_made_whole(tmp_path):
    folder = tmp_path / "deep" / "set"
    with made_whole(folder) as making:
        (making / "file").write_text("all")
        assert not folder.exists()
    assert (folder / "file").read_text() == "all"

    def fail_halfway():
        with made_whole(tmp_path / "deep" / "other") as making:
            (making / "file").write_text("half")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail_halfway()
    with made_whole(folder) as making:  # somebody else was first
        (making / "file").write_text("the same")
    assert (folder / "file").read_text() == "all"
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["set"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"), made_whole(tmp_path / "file" / "set"):
        pass
