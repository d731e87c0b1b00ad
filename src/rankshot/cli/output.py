"""Where answers go: a terminal, which is sent nothing but text; or a file, pipe or device, which gets names as they are."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from rankshot.files import output, write_all
from rankshot.terminal import json_line, printable

OPEN_ALREADY = re.compile(r"/dev/std(?:out|err)|(?:/dev/fd|/proc/self/fd)/([0-9]+)")
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def _as_they_were(error: UnicodeError) -> tuple[bytes, int]:
    """The bytes of a name that are no text, and as UTF-8 whatever else the encoding of file names does not have."""
    assert isinstance(error, UnicodeEncodeError)
    first = error.object[error.start]
    if "\udc80" <= first <= "\udcff":
        return bytes([ord(first) - 0xDC00]), error.start + 1
    return first.encode("utf-8", "surrogatepass"), error.start + 1


codecs.register_error("rankshot.as_they_were", _as_they_were)


class Answers:
    """Rows, as CSV or as JSON.

    write      bytes
    encoding   of the terminal that they are shown on; None: they are not
    """

    def __init__(self, write: Callable[[bytes], object], encoding: str | None) -> None:
        self._write, self._encoding = write, encoding

    def csv(self, rows: Iterable[Iterable[object]]) -> None:
        """Names have the bytes that they have on the disk."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        if self._encoding is not None:
            writer.writerows([printable(value) for value in row] for row in rows)
            self._write(lines.getvalue().encode(self._encoding, "backslashreplace"))
        else:
            writer.writerows(rows)
            self._write(lines.getvalue().encode(sys.getfilesystemencoding(), "rankshot.as_they_were"))

    def json(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """An object a line, in UTF-8 as JSON is, or in ASCII where a terminal has another encoding."""
        self._write("".join(json_line(row, self._encoding) + "\n" for row in rows).encode())


@contextmanager
def answers_to(path: Path | None) -> Iterator[Answers]:
    """To standard output, or into a file, whose place is taken when all is written."""
    if path is None:
        sys.stdout.flush()
        yield Answers(_printed, sys.stdout.encoding if sys.stdout.isatty() else None)
        sys.stdout.flush()
        return
    if (number := OPEN_ALREADY.fullmatch(str(path))) is not None:
        handle = os.dup(STREAMS.get(str(path)) or int(number[1]))  # where it stands: opened anew, it would be emptied
        with os.fdopen(handle, "wb", buffering=0) as stream:
            yield _into(stream)
        return
    with output(path) as file:
        yield _into(file)


def _printed(content: bytes) -> None:
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(content)
    else:  # text alone, to somebody in Python
        sys.stdout.write(os.fsdecode(content))


def _into(file: BinaryIO) -> Answers:
    return Answers(partial(write_all, file), "utf-8" if file.isatty() else None)
