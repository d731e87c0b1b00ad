"""Ctrl-C: one word, whatever moment it comes at.

A command is stopped by a `KeyboardInterrupt`, so that it takes its unfinished files away. While modules are imported, while
a command that was stopped ends, and while Python does, nothing is being written: then Ctrl-C ends the process at once. (A
`KeyboardInterrupt` within an import is a traceback at best, and at worst takes torch's C++ down with it.)
"""

# Nothing more is imported here: it would take time, in which Ctrl-C is not heard yet. So would `signal`, for its enums.
import _signal as signal  # type: ignore[import-not-found]
import atexit
import os
import sys

CODE = 130
SHOW_CURSOR = b"\x1b[?25h"  # which a bar has hidden


class Interrupts:
    """What Ctrl-C does from now on: it ends the process, but for what runs in `with`, which hears of it first.

    Left alone where somebody else listens, where it is switched off (nohup), and beside the main thread.
    """

    def __init__(self) -> None:
        self._at_once = self._begun = False
        try:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._at_once = True
                signal.signal(signal.SIGINT, self._heard)
                self._begun = True
                atexit.register(_ignore)  # the first to be registered is the last to run
        except ValueError:  # another thread than the main one
            pass

    def end(self) -> None:
        """The process goes on without us; only Python's own end is ours again."""
        if self._begun:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)

    def __enter__(self) -> None:
        self._at_once = False

    def __exit__(self, *_: object) -> None:
        self._at_once = True

    def _heard(self, number: int, frame: object) -> None:
        if self._at_once:
            end_at_once()
        self._at_once = True  # who asks twice does not want to wait
        raise KeyboardInterrupt


def end_at_once(*_: object) -> None:
    """Without waiting for anything."""
    shown = SHOW_CURSOR if "rich.live" in sys.modules and os.isatty(2) else b""
    try:
        os.write(2, shown + b"stopped\n")
    finally:
        os._exit(CODE)


def _at_exit() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


def _ignore() -> None:
    """Nothing is left to be stopped, and Python no longer listens: it would be a death by signal, without a word."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
