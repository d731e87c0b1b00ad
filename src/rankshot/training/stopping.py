"""Asked to stop, a run first finishes its update and writes a checkpoint."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop, by Ctrl-C or SIGTERM, and has left a checkpoint to go on from."""


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, or SIGTERM, sets; the second one does what it always does."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # signals reach the main thread alone
        return

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        put_handlers_back()

    def put_handlers_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    # A handler that is None was not set from Python, and cannot be put back.
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) is not None}
    try:
        for number in before:  # when it is known what to put back: a signal may come at once
            signal.signal(number, ask)
        yield asked
    finally:
        put_handlers_back()
