"""The library that makes the n-th write fail: compiled when it is needed, loaded before everything else."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("failing.c")
TOLD = "RANKSHOT_FAILING"  # where the library lies, in a process that has it


def why_not() -> str | None:
    """Why the n-th write cannot be made to fail here; None: it can."""
    if sys.platform != "linux":
        return "it takes LD_PRELOAD, and /proc"
    if shutil.which("gcc") is None:
        return "it takes gcc"
    return None


def begin_anew_with_it(arguments: Sequence[str]) -> None:
    """Python with these arguments in the place of this process, with the library; returns where that is so already, or
    cannot be."""
    if TOLD in os.environ or why_not() is not None:
        return
    library = compiled()
    environment = {**os.environ, TOLD: str(library), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, *arguments], environment)


def compiled() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rankshot-failing-"))
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(folder / "failing.so"), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return folder / "failing.so"


def forget() -> None:
    """The library's file: it is loaded here, and not wanted in programs that are started."""
    os.environ.pop("LD_PRELOAD", None)
    if library := os.environ.get(TOLD):
        shutil.rmtree(Path(library).parent, ignore_errors=True)


class Failing:
    """The library, in a process that was begun with it."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def arm(self, folder: Path, number: int, error: int, *, lasts: bool, halves: bool) -> None:
        """From now on in this process; 0: nothing fails any more."""
        self._library.failing_arm(os.fsencode(folder), ctypes.c_long(number), error, int(lasts), int(halves))

    @property
    def calls(self) -> int:
        """That were counted since."""
        self._library.failing_calls.restype = ctypes.c_long
        return int(self._library.failing_calls())
