"""Who is looking: a person at a terminal with colours, or a log. They see words, never what a terminal would obey."""

from __future__ import annotations

import codecs
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO


def printable(text: object) -> str:
    r"""On one line, with what no terminal should be sent as an escape: names of files and classes can hold anything.

    Those are control characters, line breaks too, marks that turn the direction of writing, and bytes that are no text.

    >>> print(printable("café \x1b[31m \u202egnp.exe \udcff\n"))
    café \x1b[31m \u202egnp.exe \xff\n
    """
    text = str(text)
    return text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # how Python has a byte of a name that is no text
        return f"\\x{ord(character) - 0xDC00:02x}"
    return ascii(character)[1:-1]


def say(*lines: object, stream: TextIO | None = None) -> None:
    """Print so many lines, at once; on standard output, unless it is told."""
    print(*map(printable, lines), sep="\n", file=sys.stdout if stream is None else stream, flush=True)


def json_line(value: Any, encoding: str | None = None) -> str:
    r"""A JSON value on one line, from which a program gets exactly what was given.

    encoding   of where it goes: in UTF-8, or where there is none, letters of all languages stand as they are; else not

    >>> print(json_line({"id": "café \x9b1m \udcff"}))
    {"id": "café \u009b1m \udcff"}
    """
    line = json.dumps(value, ensure_ascii=codecs.lookup(encoding or "utf-8").name != "utf-8")
    return line if line.isprintable() else "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def wants_bar(stream: TextIO | None = None) -> bool:
    """On a terminal with colour that a person watches, where rich is installed; standard output, unless it is told."""
    stream = sys.stdout if stream is None else stream
    colourless = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    if colourless or os.environ.get("CI") or stream is None or not stream.isatty():
        return False
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def counting(name: str, lines: int = 10, tell: Callable[[str], None] = say) -> Iterator[Callable[[int, int], None]]:
    """show(done, total): a bar, or about `lines` plain lines.

    tell   who hears the lines; who gives one hears all of them, and nothing is printed
    """
    if tell is not say or not wants_bar():
        yield _lines(name, lines, tell)
        return
    from rich import markup, progress

    name = markup.escape(printable(name))
    columns = (progress.TextColumn("[bold]{task.description}"), progress.BarColumn(bar_width=None))
    with progress.Progress(*columns, progress.MofNCompleteColumn(), progress.TimeRemainingColumn()) as bar:
        task = bar.add_task(name, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@contextmanager
def tallying(what: str, *, beside_output: bool = True) -> Iterator[Callable[[int], None]]:
    """show(done), of nobody knows how many: a live line on standard error, and nothing in a log.

    beside_output   what a command prints goes elsewhere; on the same terminal its lines are progress enough
    """
    if not wants_bar(sys.stderr) or not beside_output:
        yield lambda done: None
        return
    from rich import console, progress

    counted = progress.TextColumn("{task.completed:,.0f} {task.description}")
    rate = progress.TextColumn("[magenta]{task.fields[rate]}[/]")
    columns = (progress.SpinnerColumn(), counted, rate, progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=console.Console(stderr=True), redirect_stdout=False) as bar:
        task, start = bar.add_task(what, total=None, rate=""), time.perf_counter()

        def show(done: int) -> None:
            rate = done / max(time.perf_counter() - start, 1e-9)
            bar.update(task, completed=done, rate=f"{rate:,.0f}/s")

        yield show


def _lines(name: str, lines: int, tell: Callable[[str], None]) -> Callable[[int, int], None]:
    lines_told = 0

    def show(done: int, total: int) -> None:
        nonlocal lines_told
        if done * lines // total > lines_told:
            lines_told = done * lines // total
            tell(f"{name}  {done}/{total}")

    return show
