"""How often a classifier was right about images that lie in folders named as its classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rankshot.terminal import printable

ENOUGH = 0.5  # of all images must lie in such folders: else they are hardly meant to tell the class


class Answered(NamedTuple):
    """An image whose folder is named as a class, and what was answered.

    truth     the name of its folder
    probability   of the class that was answered; None: the answer is none of these
    example   of the class that was answered, that it is most like; for none of these, of all
    """

    image: str
    truth: str
    answer: str
    probability: float | None
    example: str


class Tally:
    """What was answered, image by image.

    classes   the names of the classes
    unknown   the answer for none of these, where it may come: also the name of a folder of images of other classes
    taught    the paths of the examples: to be right about these is no merit
    """

    def __init__(self, classes: Iterable[str], unknown: str | None = None, taught: Iterable[str] = ()) -> None:
        names = [*classes, *([] if unknown is None else [unknown])]
        self._answers: dict[str, Counter[str]] = {name: Counter() for name in names}
        self._unknown, self._taught = unknown, frozenset(taught)
        self._elsewhere = self._known = 0

    def add(self, image: str, answer: str) -> None:
        """Of an image whose folder is named as a class, whether the answer is right."""
        folder = Path(image).parent.name
        if folder in self._answers:
            self._answers[folder][answer] += 1
            self._known += image in self._taught
        else:
            self._elsewhere += 1

    def lines(self) -> list[str]:
        """How often it was right, and a line for each class; none where too few of the images can tell."""
        classes = {name: answers for name, answers in self._answers.items() if answers}
        n = sum(answers.total() for answers in classes.values())
        if n <= ENOUGH * (n + self._elsewhere):
            return []
        right = sum(answers[name] for name, answers in classes.items())
        lines = [f"accuracy {100 * right / n:.1f} %: {right} of the {n} images in folders that are named as classes"]
        if self._unknown is not None:
            turned_away = sum(answers[self._unknown] for answers in classes.values())
            answered = n - turned_away
            named = right - classes.get(self._unknown, Counter())[self._unknown]
            share = f": of the other {answered}, {100 * named / answered:.1f} % are right" if answered else ""
            lines.append(f"{turned_away} of them were answered {self._unknown!r}{share}")
        if self._elsewhere:
            lines.append(f"not counted, since they lie elsewhere: {self._elsewhere}")
        if self._known:
            lines.append(f"examples that it was taught with, among those counted: {self._known}")
        return lines + _table([self._row(name, answers) for name, answers in classes.items()], self._head())

    def _head(self) -> list[str]:
        return ["class", "images", "right", *(["unknown"] if self._unknown is not None else []), "most often taken for"]

    def _row(self, name: str, answers: Counter[str]) -> list[str]:
        wrong = [(count, answer) for answer, count in answers.items() if answer not in (name, self._unknown)]
        count, other = min(wrong, key=lambda each: (-each[0], each[1]), default=(0, ""))
        unknown = [str(answers[self._unknown])] if self._unknown is not None else []
        return [name, str(answers.total()), str(answers[name]), *unknown, f"{other} ({count})" if count else ""]


def _table(rows: list[list[str]], head: list[str]) -> list[str]:
    """Columns under their heads: texts to the left, numbers to the right."""
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    last = len(head) - 1
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
