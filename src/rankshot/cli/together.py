"""A command that torchrun has started in several processes: the first speaks, the others compute."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from rankshot.gathering import ToldByFirst, is_first
from rankshot.processes import PATIENCE, joined

A_MOMENT = 1.0  # for the first process to tell why, before torchrun sees that one has ended


@contextmanager
def together(patience: float = PATIENCE) -> Iterator[None]:
    """For the whole of a command."""
    with joined(patience):
        if is_first():
            yield
            return
        logging.getLogger("rankshot").setLevel(logging.ERROR)
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield
            except ToldByFirst:
                time.sleep(A_MOMENT)
                raise SystemExit(1) from None
