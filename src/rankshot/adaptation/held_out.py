"""Which rows a map learns from, and which tell how well it does: rows of classes that it has not seen, or other rows.

Rows of unseen classes rank one another among rows of the classes that were learned. Without that company, few classes are
told apart too easily to say which map is best, and a map that only knows the learned classes looks good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST_CLASSES = 4  # of which two can be held out, and two are left
FOLDS = 3  # of small data; of large data one is enough
MANY_CLASSES, MANY_ROWS = 20, 2000
MOST_HELD, MOST_COMPANY = 300, 500  # rows that rank, and learned rows that are ranked beside them

Indices = NDArray[np.int64]


class Fold(NamedTuple):
    """Indices of rows: to learn from, to rank one another, and some of the learned ones, to be ranked beside."""

    learned: Indices
    held_out: Indices
    company: Indices


def folds(labels: NDArray[np.int64], how: str, fraction: float, seed: int) -> list[Fold]:
    """Of rows with classes (n,), of which each that counts has two rows or more; negative: no class.

    how   "classes", "rows", or "auto": classes, unless there are fewer than four
    """
    known = np.flatnonzero(labels >= 0)
    classes, counts = np.unique(labels[known], return_counts=True)
    rankable = classes[counts > 1]
    generator = np.random.default_rng(seed)
    if how == "classes" or (how == "auto" and len(rankable) >= FEWEST_CLASSES):
        if len(rankable) < FEWEST_CLASSES:
            raise ValueError(
                f"held_out='classes' needs {FEWEST_CLASSES} classes of two rows or more, got {len(rankable)}: use 'rows'"
            )
        return _of_classes(labels, known, rankable, fraction, generator)
    return _of_rows(labels, known, fraction, generator)


def _of_classes(
    labels: NDArray[np.int64], known: Indices, classes: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> list[Fold]:
    """Of few classes half are held out, again and again; of many some."""
    is_many = len(classes) >= MANY_CLASSES
    held = max(2, round(fraction * len(classes))) if is_many else len(classes) // 2
    found = []
    for _ in range(1 if is_many else FOLDS):
        is_held = np.isin(labels[known], generator.permutation(classes)[:held])
        learned, others = known[~is_held], known[is_held]
        company = _even(labels, learned, MOST_COMPANY, generator)
        found.append(Fold(learned, _even(labels, others, MOST_HELD, generator), company))
    return found


def _of_rows(labels: NDArray[np.int64], known: Indices, fraction: float, generator: np.random.Generator) -> list[Fold]:
    """Of every class with four rows or more its share, two at least; none where no class is so large."""
    order = generator.permutation(known)
    order = order[np.argsort(labels[order], kind="stable")]
    _, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
    if counts.max() < 4:
        return []
    within, of_class = np.arange(len(order)) - np.repeat(starts, counts), np.repeat(counts, counts)
    a_part = np.maximum(2, (fraction * of_class).astype(np.int64))
    found = []
    for fold in range(1 if len(known) >= MANY_ROWS else FOLDS):
        place = (within + fold * a_part) % of_class
        is_held = (of_class >= 4) & (place < a_part)
        none = np.zeros(0, dtype=np.int64)
        found.append(Fold(np.sort(order[~is_held]), _even(labels, np.sort(order[is_held]), MOST_HELD, generator), none))
    return found


def _even(labels: NDArray[np.int64], rows: Indices, most: int, generator: np.random.Generator) -> Indices:
    """At most so many rows, of all classes alike; ten of each at least, and then not of all classes."""
    if len(rows) <= most:
        return rows
    order = generator.permutation(rows)
    order = order[np.argsort(labels[order], kind="stable")]
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    a_class = max(10, most // len(parts))
    chosen = [parts[index][:a_class] for index in generator.permutation(len(parts))]
    return np.sort(np.concatenate(chosen)[:most])
