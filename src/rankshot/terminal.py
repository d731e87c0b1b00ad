"""Who is looking: a person at a terminal with colours, or a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def wants_bar() -> bool:
    """On a terminal with colour that a person watches, where rich is installed."""
    colourless = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    if colourless or os.environ.get("CI") or sys.stdout is None or not sys.stdout.isatty():
        return False
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def counting(name: str, lines: int = 10) -> Iterator[Callable[[int, int], None]]:
    """told(done, total): a bar, or about `lines` plain lines."""
    if not wants_bar():
        yield _lines(name, lines)
        return
    from rich import progress

    columns = (progress.TextColumn("[bold]{task.description}"), progress.BarColumn(bar_width=None))
    with progress.Progress(*columns, progress.MofNCompleteColumn(), progress.TimeRemainingColumn()) as bar:
        task = bar.add_task(name, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _lines(name: str, lines: int) -> Callable[[int, int], None]:
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if done * lines // total > told:
            told = done * lines // total
            print(f"{name}  {done}/{total}", flush=True)

    return tell
