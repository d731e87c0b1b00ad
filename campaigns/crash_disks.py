"""Disks that are full: a small file system of its own, with so much room left and no more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .disturbing import Trial

SIZE = 2**24  # bytes of the disk
FILLER = "filler"


def why_not() -> str | None:
    """Why no file system can be mounted here; None: it can."""
    if os.name != "posix" or os.geteuid():
        return "a file system can only be mounted by root"
    return None


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mounted for a while."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, room: int) -> None:
    """All but so many bytes."""
    with (disk / FILLER).open("wb") as file:
        free = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))


def with_little_room(trial: Trial, room: int, reference: Path) -> tuple[bool, list[str]]:
    """Whether the room was too little, and what is wrong; the trial's folder is on the small disk."""
    fill(trial.folder, room)
    ended = trial.start().wait()
    trial.learn()
    outcome = trial.outcome(ended)
    (trial.folder / FILLER).unlink()
    problems = [f"no sentence, but: {outcome['traceback']}"] if "traceback" in outcome else []
    return "done" not in outcome, problems + trial.problems(reference)
