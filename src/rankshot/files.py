"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import shutil
import tempfile
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
    """A new folder to fill, which becomes `place` when the block ends well, and disappears when it does not."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} exists already: name a new folder")
    place.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    making.chmod(0o755)
    try:
        yield making
        making.rename(place)
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
