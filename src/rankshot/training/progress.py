"""What a person sees while training: a live bar on a colour terminal, plain lines anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from typing import TYPE_CHECKING

from rankshot.fewshot import Classification, Result
from rankshot.terminal import printable, say, wants_bar

from .callbacks import Callback

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar

PLAIN_LINES = 20  # about how many of them a whole run prints


@contextmanager
def progress_for(name: str, total: int, done: int, given: Callback | None = None) -> Iterator[Callback]:
    """The one that is given; else a live bar where it can be shown; else plain lines."""
    if given is not None:
        yield given
        return
    if not wants_bar():
        yield PlainProgress(name, total, done)
        return
    bar = BarProgress(name, total, done)
    with bar.bar:
        yield bar


def validation_line(update: int, results: Sequence[Result], is_best: bool) -> str:
    """Way by way, short enough for a terminal."""
    ways: dict[int, list[str]] = {}
    for result in results:
        name = f"{result.task.shot}-shot" if isinstance(result.task, Classification) else "mAP"
        ways.setdefault(result.task.way, []).append(f"{name} {100 * result.mean:.1f}")
    scores = "  ".join(f"{way}-way: {', '.join(values)}" for way, values in ways.items())
    return f"validation {update:<6} {scores}{'  best' if is_best else ''}"


class PlainProgress(Callback):
    """A line now and then: for logs, pipes and terminals without colour."""

    def __init__(self, name: str, total: int, done: int) -> None:
        self.name, self.total = name, total
        self.every = max(1, total // PLAIN_LINES)
        self.shown = done

    def message(self, text: str) -> None:
        say(text)

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        if update < self.total and update - self.shown < self.every:
            return
        self.shown = update
        left = _time((self.total - update) / per_second)
        line = f"{update:{len(str(self.total))}d}/{self.total}  loss {loss:8.4f}  batch mAP {_percent(batch_map):>5}"
        self.message(f"{self.name}  {line}  {per_second:.1f} updates/s  {left} left")

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None:
        self.message(f"{self.name}  {validation_line(update, results, is_best)}")


class BarProgress(Callback):
    """Live: bar, updates a second, loss, batch mAP, the last validation."""

    def __init__(self, name: str, total: int, done: int) -> None:
        from rich import markup, progress

        name = markup.escape(printable(name))
        self.bar: RichBar = progress.Progress(
            progress.TextColumn("[bold]{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            progress.TextColumn("{task.fields[numbers]}"),
            progress.TextColumn("[cyan]{task.fields[left]}"),
        )
        self.total = total
        self.task = self.bar.add_task(name, total=total, completed=done, numbers="starting", left="")

    def message(self, text: str) -> None:
        self.bar.console.print(printable(text), markup=False, highlight=False)

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        numbers = f"[magenta]{per_second:.1f}/s[/]  loss [yellow]{loss:.4f}[/]  batch mAP [green]{_percent(batch_map)}[/]"
        left = _time((self.total - update) / per_second) + " left" if update < self.total else "done"
        self.bar.update(self.task, completed=update, numbers=numbers, left=left)

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None:
        self.bar.console.print(validation_line(update, results, is_best), highlight=False, style="" if is_best else "dim")


def _percent(share: float) -> str:
    return "–" if isnan(share) else f"{100 * share:.1f}"


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
