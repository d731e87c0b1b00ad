"""Ctrl-C at a moment that can bear it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Ctrl-C waits until this is over.

    What torch calls back from C++, or Python while it frees memory, may lose a `KeyboardInterrupt`, and all goes on.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:  # it is not heard here
        yield
        return
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            os.kill(os.getpid(), signal.SIGINT)
