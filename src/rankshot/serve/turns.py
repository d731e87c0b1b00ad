"""Things that take long, in threads of their own: a short question never has to wait for one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


class Turns:
    """So many at once; who comes then waits for a turn."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._threads: anyio.CapacityLimiter | None = None

    async def __call__(self, act: Callable[[], T]) -> T:
        if self._threads is None:  # made where there is a loop
            self._threads = anyio.CapacityLimiter(self._at_once)
        return await anyio.to_thread.run_sync(act, limiter=self._threads)
