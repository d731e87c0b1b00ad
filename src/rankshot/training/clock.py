"""How long a run has taken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from .run_folder import RunStatus


class Clock:
    """Seconds of a run: of training, and with validation, also of the processes before this one."""

    def __init__(self, status: RunStatus) -> None:
        self._before, self._paused = status, 0.0
        self.last_pause: float | None = None  # in seconds
        self._began = self._entered = time.perf_counter()

    def start(self) -> None:
        """Training begins now; what came before in this process counts in `total` alone."""
        self._began, self._paused = time.perf_counter(), 0.0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While this lasts, no training happens."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.last_pause = time.perf_counter() - began
            self._paused += self.last_pause

    @property
    def training(self) -> float:
        return self._before.seconds + time.perf_counter() - self._began - self._paused

    @property
    def total(self) -> float:
        return self._before.total_seconds + time.perf_counter() - self._entered

    def is_past(self, minutes: float | None) -> bool:
        return minutes is not None and self.total >= 60 * minutes
