"""Where what is prepared lies, data and weights, and how it gets there whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .files import locked


def root_of(root: str | Path | None = None) -> Path:
    """`root`, or the environment's RANKSHOT_DATA, or the platform's folder for caches."""
    if root is not None:
        return Path(root)
    if named := os.environ.get("RANKSHOT_DATA"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "rankshot"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankshot"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankshot"


STALE = 60  # seconds, in which a folder that was just made gets its lock


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which becomes `folder` when the block ends well, and disappears when it does not.

    Of two processes that make the same folder at once the first wins; the other's, which is the same, is dropped.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{folder.name}-"
    for left in folder.parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError), locked(left) as is_ours:
            if is_ours and time.time() - left.stat().st_mtime > STALE:  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
    making = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    making.chmod(0o755)  # a root may be shared
    with locked(making):
        try:
            yield making
            try:
                making.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
