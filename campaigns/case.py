"""One input: files in a folder, and what is done with them; as data, so that it can be kept and tried again."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .arena import Arena

CASE = "case.json"
MOST_COPIED = 2**26  # bytes of a file


@dataclass
class Case:
    """What to try.

    what     the input in words
    steps    command lines, one after another; the last one's answer counts
    call     instead: the number of a library call (see `fuzz_calls`)
    family   which good input it is compared with
    probe    lines of the answer that hold this are those that the good input gives, where it is answered at all
    must     and they must be there, whatever else is wrong with the input
    asks     the user asked for that much memory, by a number on the command line
    """

    kind: str
    what: str
    steps: list[list[str]] = field(default_factory=list)
    call: int | None = None
    family: str = ""
    probe: str | None = None
    must: bool = False
    asks: bool = False

    def write(self, folder: Path, **more: Any) -> None:
        made = folder / f"{CASE}.new"
        made.write_text(json.dumps({**asdict(self), **more}, indent=1) + "\n")
        made.rename(folder / CASE)  # whoever waits for it finds it whole

    @classmethod
    def read(cls, folder: Path) -> tuple[Case, dict[str, Any]]:
        """And what else was written."""
        content = json.loads((folder / CASE).read_text())
        own = {name: content.pop(name) for name in asdict(cls("", ""))}
        return cls(**own), content


class Kind(Protocol):
    """A kind of input."""

    name: str
    share: int  # of all inputs, as weights
    families: tuple[str, ...]  # what is done with them

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        """Files into `arena.work`, made by these random numbers alone."""
        ...

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        """The same with a good input, which tells what it takes and what it answers."""
        ...


def bring(goods: Path, arena: Arena, *names: str) -> None:
    """Good folders into the place to work in."""
    for name in names:
        copy(goods / name, arena.work / name)


def copy(source: Path, to: Path) -> None:
    """Whatever lies there: links stay links, pipes pipes, nothing is followed or waited for."""
    status = source.lstat()
    if stat.S_ISLNK(status.st_mode):
        to.symlink_to(os.readlink(source))
    elif stat.S_ISDIR(status.st_mode):
        to.mkdir(parents=True, exist_ok=True)
        for entry in source.iterdir():
            copy(entry, to / entry.name)
    elif stat.S_ISFIFO(status.st_mode):
        os.mkfifo(to)
    elif stat.S_ISREG(status.st_mode):
        to.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as old, to.open("wb") as new:
            new.write(old.read(MOST_COPIED))
            new.truncate(status.st_size)  # of one that is larger than that nothing but its size counts
        shutil.copystat(source, to)
