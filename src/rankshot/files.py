"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes | str) -> None:
    """Write beside `path`, wait for the disk, then take its place: a crash leaves the old file or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise type(error)(error.errno, error.strerror, str(path)) from error
    _wait_for_folder(path.parent)


def _wait_for_folder(folder: Path) -> None:
    """A new name outlives a power cut only when its folder has reached the disk too (where folders can be opened)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
