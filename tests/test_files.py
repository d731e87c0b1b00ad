"""A file is there whole or not at all."""

import os
import resource
import signal

import pytest

from rankshot.files import whole_folder, write_whole


def test_text_and_bytes(tmp_path):
    write_whole(tmp_path / "a", "text ✓")
    write_whole(tmp_path / "a", b"\0newer")
    assert (tmp_path / "a").read_bytes() == b"\0newer"
    assert os.listdir(tmp_path) == ["a"]


def test_a_failure_leaves_the_old_file_and_names_it(tmp_path):
    path = tmp_path / "a"
    write_whole(path, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_whole(path, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_whole_or_not_at_all(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "a") as place:
        (place / "half").write_text(str(1 / 0))
    assert os.listdir(tmp_path) == []
    with whole_folder(tmp_path / "a") as place:
        (place / "b").write_text("whole")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "b").read_text() == "whole"
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(FileExistsError, match="exists already"), whole_folder(tmp_path / "a"):
        pass


def test_a_folder_that_is_there_is_filled_where_it_is(tmp_path):
    (tmp_path / "volume").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "volume")
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "link") as place:
        (place / str((place / "inner").mkdir())).write_text(str(1 / 0))
    assert os.listdir(tmp_path / "volume") == []
    with whole_folder(tmp_path / "link") as place:
        (place / "whole").write_text("")
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "volume") == ["whole"]


def test_who_may_read_a_new_folder(tmp_path):
    before = os.umask(0o077)
    try:
        with whole_folder(tmp_path / "mine"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


def test_nowhere_to_write(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError) as caught:
        write_whole(tmp_path / "file" / "a", "text")
    assert caught.value.filename == str(tmp_path / "file" / "a")
