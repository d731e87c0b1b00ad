"""A command that torchrun has started in several processes: the first speaks, the others compute."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta

from rankshot.gathering import ToldByFirst, is_first
from rankshot.processes import PATIENCE, joined


@contextmanager
def together(patience: timedelta = PATIENCE) -> Iterator[None]:
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
                raise SystemExit(1) from None
