"""Standard output and standard error: there, whatever the shell did to them, and fit for every name in every locale."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast

from rankshot.terminal import printable

COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


def make_ready() -> None:
    """What cannot be said in the terminal's encoding is escaped. What was closed (`>&-`) leads nowhere: else the next file
    that is opened would be taken for it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        with suppress(OSError, ValueError):
            if getattr(sys, name) is None and not _is_open(number):
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8", errors="backslashreplace"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not where somebody listens in Python
            stream.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def give_up(stream: TextIO) -> None:
    """Whoever read it has gone, or it has no room: what is left of it is not tried again when Python ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def escaped(*, colours: bool) -> Iterator[None]:
    """For what others print, which may repeat anything that was typed: a terminal is sent text, and perhaps its colours."""
    with (
        redirect_stdout(cast(TextIO, _Escaped(sys.stdout, colours))),
        redirect_stderr(cast(TextIO, _Escaped(sys.stderr, colours))),
    ):
        yield


class _Escaped:
    """A stream; without colours it says of itself that it is none that could show them."""

    def __init__(self, stream: TextIO, colours: bool) -> None:
        self._stream, self._colours = stream, colours

    def isatty(self) -> bool:
        return self._colours and self._stream.isatty()

    def write(self, text: str) -> int:
        parts = COLOUR.split(text) if self.isatty() else [text]  # every second one is a colour
        parts[::2] = ["\n".join(map(printable, text.split("\n"))) for text in parts[::2]]
        return self._stream.write("".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
