"""The one way to read and write files: whole or not at all, and never through a link that came with a folder.

A folder may come from elsewhere: a run that somebody passed on, a gallery that was downloaded. So what lies inside is read
only if it is a plain file, and what is written is a new file of a random name, which then takes the place of the old one.
A link at that place is replaced, never followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO

PARTIAL = ".*.partial"  # what a process that was killed while writing leaves behind
MOST_BYTES, A_PART = 2**28, 2**20  # of a file that is read at once, and of one that is read part by part
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
BINARY, DO_NOT_WAIT = getattr(os, "O_BINARY", 0), getattr(os, "O_NONBLOCK", 0)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write beside `path`, wait for the disk, then take its place: a crash leaves the old file or the new one."""
    with named(path), replacing(path) as file:
        write_all(file, content.encode(errors="backslashreplace") if isinstance(content, str) else content)


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """A file that a person has named, to be filled with `write_all`, unbuffered.

    A pipe or a device is written to. Else it is where a link leads to, and is replaced as `replacing` does.
    """
    if path.exists() and not path.is_file():
        with named(path):
            file = path.open("wb", buffering=0)
        with file:
            yield file
        return
    with replacing(Path(os.path.realpath(path))) as replaced:
        yield replaced


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file to fill, which takes the place of `path` when the block ends well; else nothing has changed."""
    partial = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.partial")
    with named(path):
        file = _created(partial)
        with suppress(OSError):  # who may read the old file may read the new one, and nobody else
            before = os.stat(path, follow_symlinks=False).st_mode
            if stat.S_ISREG(before):
                os.chmod(partial, before & 0o777)
    try:
        with file:
            yield file
            with named(path):
                os.fsync(file.fileno())
        with named(path):
            partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    wait_for_folder(path.parent)


def write_all(file: IO[bytes], content: bytes | memoryview) -> None:
    """To the last byte: a disk with little room left takes a part of what it is given, and says so by a number alone."""
    rest = memoryview(content).cast("B")
    while len(rest):
        rest = rest[os.write(file.fileno(), rest) :]


class Lines:
    """A file that grows by one line at a time, each there whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Of a file that is there."""
        check_plain(path)
        with named(path):
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | BINARY | NO_LINK), "wb", buffering=0)
        self.path = path

    def append(self, line: bytes) -> None:
        before = os.fstat(self._file.fileno()).st_size
        with named(self.path):
            try:
                write_all(self._file, line + b"\n")
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file.fileno(), before)
                raise

    def wait_for_disk(self) -> None:
        with named(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_whole(path: Path, most: int = MOST_BYTES, *, follow: bool = False) -> bytes:
    """The content of a plain file of at most so many bytes; see `opened`."""
    with opened(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        is_too_large = size > most
        # No more than its size is asked for at first, since Python takes as much memory as it is asked to read.
        part = content = b"" if is_too_large else file.read(min(most, max(size, A_PART)) + 1)
        while part and len(content) <= most:
            part = file.read(A_PART)
            content += part or b""
    if content is None:
        raise _refused(path, "is no file that can be read to its end")
    if is_too_large or len(content) > most:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes, the most that is read of such a file", str(path))
    return content


def digest_of(path: Path, most: int | None = None, *, follow: bool = False) -> str | None:
    """SHA-256 of a plain file; None where it is larger than `most`, or than its own size: some that only look plain, as
    below /proc, never end."""
    digest = hashlib.sha256()
    with opened(path, follow=follow) as file:
        left = os.fstat(file.fileno()).st_size
        if most is not None and left > most:
            return None
        while part := file.read(min(A_PART, left + 1)):
            left -= len(part)
            if left < 0:
                return None
            digest.update(part)
    return digest.hexdigest()


def text_of(path: Path) -> str:
    """Of a file that a person names, in UTF-8, whatever the locale."""
    try:
        return read_whole(path, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from None


def opened(path: Path, *, follow: bool = False) -> BufferedReader:
    """A plain file, to be read. Devices, pipes and the like are refused before they are opened: some never end.

    follow   also what a link leads to: for files that a person names, not for what lies in a folder from elsewhere
    """
    check_plain(path, follow=follow)
    with named(path):
        handle = os.open(path, os.O_RDONLY | BINARY | DO_NOT_WAIT | (0 if follow else NO_LINK))
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # it was another one a moment ago
        os.close(handle)
        raise _refused(path, "is no plain file")
    return os.fdopen(handle, "rb")


def check_plain(path: Path, *, follow: bool = False) -> None:
    """Complain unless `path` is a plain file, or with `follow` a link to one."""
    with named(path):
        kind = os.stat(path, follow_symlinks=follow).st_mode
    if stat.S_ISLNK(kind):
        raise _refused(path, "is a link, and links within such a folder are not followed")
    if not stat.S_ISREG(kind):
        raise _refused(path, "is a folder" if stat.S_ISDIR(kind) else "is no plain file")


def check_own(path: Path) -> None:
    """Complain about a file that is written in place and has another name elsewhere: that one would change too."""
    if os.path.lexists(path):
        check_plain(path)
        if os.stat(path, follow_symlinks=False).st_nlink > 1:
            raise _refused(path, "has another name elsewhere (a hard link), which would change with it: use a copy")


def check_no_link(path: Path) -> None:
    """Complain about a link, to a folder perhaps. What is not there is nobody's link."""
    if path.is_symlink():
        raise _refused(path, "is a link, and links within such a folder are not followed")


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EINVAL, why, str(path))


def check_new_folder(folder: Path) -> None:
    """Complain now, and not when everything is done, about a place where `whole_folder` would make none."""
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists already: name a new folder")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which is there as `folder` when the block ends well, and not when it does not.

    One that is there and empty is filled where it is, since it may be a volume or a link: put last what makes it whole.
    """
    check_new_folder(folder)
    if folder.exists():
        try:
            yield folder
        except BaseException:
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            raise
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    making.mkdir()
    try:
        yield making
        making.rename(folder)
        wait_for_folder(folder.parent)
    finally:
        shutil.rmtree(making, ignore_errors=True)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An error of the system tells which file it is about, not only what is wrong."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Whether this folder was free and is now ours; a process that dies lets go by itself. Always free without flock."""
    try:
        import fcntl
    except ImportError:
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def wait_for_folder(folder: Path) -> None:
    """A new name outlives a power cut only when its folder has reached the disk too (where folders can be opened)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _created(path: Path) -> BinaryIO:
    """A new file, which nobody has put anything in the place of."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY | NO_LINK, 0o666), "w+b", buffering=0)
