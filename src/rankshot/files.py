"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path: Path, content: bytes | str) -> None:
    """Write beside `path`, wait for the disk, then take its place: a crash leaves the old file or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    with named(path):
        try:
            with partial.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            with suppress(OSError):
                partial.unlink()
            raise
    _wait_for_folder(path.parent)


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which is there as `place` when the block ends well, and not when it does not.

    One that is there and empty is filled where it is, since it may be a volume or a link: put last what makes it whole.
    """
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} exists already: name a new folder")
    if place.exists():
        try:
            yield place
        except BaseException:
            for each in place.iterdir():
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            raise
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    making = place.with_name(f".{place.name}-{secrets.token_hex(4)}")
    making.mkdir()
    try:
        yield making
        making.rename(place)
        _wait_for_folder(place.parent)
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


def _wait_for_folder(folder: Path) -> None:
    """A new name outlives a power cut only when its folder has reached the disk too (where folders can be opened)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
