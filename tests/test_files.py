"""A file is there whole or not at all."""

import hashlib
import os
import resource
import signal
from pathlib import Path

import pytest
from disks import grow

from rankshot.files import (
    Lines,
    check_no_link,
    digest_of,
    opened,
    output,
    read_whole,
    replacing,
    whole_folder,
    write_all,
    write_whole,
)


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


@pytest.mark.parametrize("name", ["a", ".a.partial"])
def test_no_link_is_written_through(tmp_path, name):
    """Of finding 1: the name of what is written first was known, and a link there led anywhere."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / name).symlink_to(victim)
    write_whole(tmp_path / "a", "new")
    assert victim.read_text() == "mine"
    assert (tmp_path / "a").read_text() == "new"
    assert not (tmp_path / "a").is_symlink()


def test_two_writers_do_not_meet(tmp_path):
    """Of finding 4: both wrote into one partial file."""
    with replacing(tmp_path / "a") as one, replacing(tmp_path / "a") as other:
        write_all(one, b"one")
        write_all(other, b"other")
    assert (tmp_path / "a").read_bytes() == b"one"  # who ends last wins, whole
    assert os.listdir(tmp_path) == ["a"]


def test_what_may_be_read_is_not_taken_as_memory_before(tmp_path):
    """With little memory, a classifier could not be saved: the file of its weights may have 16 GiB."""
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    assert read_whole(tmp_path / "a", 2**60) == b"x" * 3_000_000
    assert read_whole(tmp_path / "a", 3_000_000) == b"x" * 3_000_000
    with pytest.raises(OSError, match="larger than 2,999,999 bytes"):
        read_whole(tmp_path / "a", 2_999_999)
    (tmp_path / "empty").write_bytes(b"")
    assert read_whole(tmp_path / "empty", 2**60) == b""


def test_a_link_is_not_read_unless_asked(tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="is a link, and links within such a folder are not followed"):
        read_whole(tmp_path / "link")
    assert read_whole(tmp_path / "link", follow=True) == b"text"
    with pytest.raises(OSError, match="is a link"):
        Lines(tmp_path / "link")
    with pytest.raises(OSError, match="is a link"):
        check_no_link(tmp_path / "link")
    check_no_link(tmp_path / "nothing")


@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_plain_file_is_never_opened(tmp_path, follow):
    """Of finding 5: a pipe waits for ever, and a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, told in (("pipe", "is no plain file"), ("zero", "plain file|link"), (".", "is a folder")):
        with pytest.raises(OSError, match=told):
            opened(tmp_path / name, follow=follow)
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "nothing", follow=follow)


def test_no_more_is_read_than_asked_for(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_whole(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="is larger than 4 bytes, the most that is read of such a file"):
        read_whole(tmp_path / "a", 4)


def test_digests_end(tmp_path):
    """What says that it is empty, or is larger than any such file, is not read to an end that may not come."""
    (tmp_path / "a").write_bytes(b"12345")
    assert digest_of(tmp_path / "a") == hashlib.sha256(b"12345").hexdigest()
    assert digest_of(tmp_path / "a", 4) is None
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(2**42)
    assert digest_of(tmp_path / "holes", 2**27) is None
    (tmp_path / "empty").write_bytes(b"")
    assert digest_of(tmp_path / "empty") == hashlib.sha256().hexdigest()


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("name", ["/proc/self/pagemap", "/proc/self/maps"])
def test_what_only_looks_like_a_file_has_no_digest(name):
    assert digest_of(Path(name)) is None


def test_a_new_file_may_be_read_by_whom_the_old_one_might(tmp_path):
    write_whole(tmp_path / "a", b"old")
    (tmp_path / "a").chmod(0o600)
    write_whole(tmp_path / "a", b"new")
    assert ((tmp_path / "a").stat().st_mode & 0o777, (tmp_path / "a").read_bytes()) == (0o600, b"new")


def test_a_part_of_what_is_written_is_not_all(small_disk):
    """Of finding 2: a disk with little room takes some bytes and tells how many."""
    disk = small_disk("8k")
    write_whole(disk / "a", b"old")
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(disk / "a", b"x" * 20_000)
    assert caught.value.filename == str(disk / "a")
    assert (disk / "a").read_bytes() == b"old"
    grow(disk, "64k")
    write_whole(disk / "a", b"x" * 20_000)
    assert (disk / "a").stat().st_size == 20_000


def filled(path, content=b"new"):
    with output(path) as file:
        write_all(file, content)


def test_what_a_person_names_to_be_written(tmp_path):
    """A link is followed, a pipe and a device are written to, a file is replaced when all is there."""
    filled(tmp_path / "a")
    (tmp_path / "elsewhere").mkdir()
    for name in ("there", "not there yet"):
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / name)
        filled(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / name).read_bytes() == b"new"
        (tmp_path / "link").unlink()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    filled(tmp_path / "pipe")
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    filled(Path(os.devnull))
    with pytest.raises(IsADirectoryError) as caught:
        filled(tmp_path)
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(ZeroDivisionError), output(tmp_path / "a") as file:
        file.write(b"newer" * (1 // 0))
    assert (tmp_path / "a").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["a", "elsewhere", "pipe"]


def test_text_that_no_encoding_has(tmp_path):
    write_whole(tmp_path / "a", "caf\u00e9 \udcff \ud800")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "café \\udcff \\ud800"
