"""A command that torchrun has started in several processes: the first speaks, the others compute."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from rankshot.gathering import ToldByFirst, check_same, is_first
from rankshot.processes import PATIENCE, joined

A_MOMENT = 1.0  # for the first process to tell why, before torchrun sees that one has ended


@contextmanager
def together(command: str, patience: float = PATIENCE) -> Iterator[None]:
    """For the whole of a command, which must be the same in all processes."""
    with joined(patience), _silent_unless_first():
        try:
            check_same({"command": command})
            yield
        except ToldByFirst:
            time.sleep(A_MOMENT)
            raise SystemExit(1) from None


@contextmanager
def _silent_unless_first() -> Iterator[None]:
    if is_first():
        yield
        return
    logging.getLogger("rankshot").setLevel(logging.ERROR)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def told_once() -> Iterator[None]:
    """While options are read: what is wrong with them the first process tells."""
    if is_first():
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        yield
