"""Which start, and how many updates: found on what was held out. The map of all rows is then made in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankshot.models.vector_map import VectorMap
from rankshot.randomness import generator_for
from rankshot.ranking import average_precision
from rankshot.vectors import unit_vectors

from .held_out import FOLDS, Fold
from .learning import Learner, Lessons, Recipe
from .marks import MarkedBatch, batch_of
from .measuring import ranked
from .rows import Rows
from .starts import Spread, Start, ranked_alike, spread_of, started

EVALUATIONS = 16  # in `max_iter` updates
LEAST_GAIN = 1.01  # less than this is chance: the best of many is chosen
FEWEST_ANCHORS = 10  # marked rows of which some can be held out

Embed = Callable[[Any], Tensor]
Figures = tuple[float, ...]


class Trial(NamedTuple):
    """What a map learns from; and what tells how well it does by the vectors of any rows: one figure, or two."""

    lessons: Lessons
    judge: Callable[[Embed], Figures]


class Choice(NamedTuple):
    """What was found best.

    start        None: the identity
    updates      after which it was best
    held_out     mean average precision there, and that of X as it is (`before`): of several figures, that which gains least
    is_better    whether it is, by more than chance
    history      what was seen on the way
    """

    start: Start | None
    updates: int
    held_out: float
    before: float
    is_better: bool
    history: list[dict[str, float]]


class Shape(NamedTuple):
    """Of a map: how many components, and the width of its hidden layer."""

    components: int
    hidden: int | None


def trials_of_classes(lessons: Lessons, folds: Sequence[Fold]) -> list[Trial]:
    """By labels: held-out rows rank one another, and their company."""
    trials = []
    for fold in folds:
        labels = torch.full_like(lessons.labels, -1)
        labels[fold.learned] = lessons.labels[fold.learned]
        rows = lessons.rows.seen_by(fold.learned)
        trials.append(Trial(Lessons(rows, labels, lessons.marks), partial(_judged_by_classes, fold, lessons.labels)))
    return trials


def _judged_by_classes(fold: Fold, labels: Tensor, embed: Embed) -> Figures:
    """Among themselves, and in company. Each alone can be fooled: a few classes are easily told apart, and a map that has
    learned its rows by heart draws them together, out of the way of all others."""
    rows, held = np.concatenate([fold.held_out, fold.company]), len(fold.held_out)
    vectors = embed(rows)
    alone = ranked(vectors[:held], labels[fold.held_out]).map
    return (alone, ranked(vectors, labels[rows], held).map) if len(fold.company) else (alone,)


def trials_of_marks(lessons: Lessons, fraction: float, seed: int) -> list[Trial]:
    """By marks: rows that are held out rank what they were marked with, and no mark in which they take part is learned
    from. None where there are few."""
    marks = lessons.marks
    if marks is None or len(marks.anchors) < FEWEST_ANCHORS:
        return []
    anchors = np.random.default_rng(seed).permutation(marks.anchors)
    trials = []
    for fold in range(FOLDS):
        held = np.roll(anchors, -fold * len(anchors) // FOLDS)[: max(2, round(fraction * len(anchors)))]
        batch, learned = batch_of(marks.of(held), len(lessons.labels), seed, -1), marks.without(held)
        if len(learned.anchors):
            trials.append(Trial(lessons._replace(marks=learned), partial(_judged_by_marks, batch)))
    return trials


def _judged_by_marks(batch: MarkedBatch, embed: Embed) -> Figures:
    scores = unit_vectors(embed(batch.anchors)) @ unit_vectors(embed(batch.items)).T
    return (float(average_precision(scores, batch.relevant, batch.relevant | batch.irrelevant).nanmean()),)


def choose(
    trials: Sequence[Trial],
    starts: Sequence[Start | None],
    shape: Shape,
    recipe: Recipe,
    patience: int,
    tell: Callable[[str], None],
) -> Choice:
    """The start that does best without any update; then so many updates as help, until `patience` evaluations do not."""
    before = _means(trial.judge(trial.lessons.rows.as_it_is) for trial in trials)
    spreads = [spread_for(trial.lessons) if list(starts) != [None] else None for trial in trials]
    pairs = list(zip(trials, spreads, strict=True))
    found = [_means(_with_all_components(trial, spread, start) for trial, spread in pairs) for start in starts]
    start = starts[int(np.argmax([_gain(figures, before) for figures in found]))]
    learners = [
        Learner(made(trial.lessons, spread, start, shape, recipe.seed), trial.lessons, recipe) for trial, spread in pairs
    ]
    judged = list(zip(trials, learners, strict=True))
    # The identity is itself, to the last digit.
    figures = before if start is None else _means(trial.judge(learner.vectors) for trial, learner in judged)
    tops, history = [(_gain(figures, before), 0, figures)], [{"update": 0, "held_out": min(figures)}]
    tell(f"held out: mAP {_told(before)} as it is, {_told(figures)} at the start ({_named(start)})")
    every = max(1, recipe.max_iter // EVALUATIONS)
    for update in range(every, recipe.max_iter + 1, every):
        loss = fmean(learner.learn(update) for learner in learners)
        figures = _means(trial.judge(learner.vectors) for trial, learner in judged)
        history.append({"update": update, "loss": loss, "held_out": min(figures)})
        tell(f"update {update}/{recipe.max_iter}  loss {loss:.4f}  held out: mAP {_told(figures)}")
        tops.append((_gain(figures, before), -update, figures))
        if update + max(tops)[1] >= patience * every:
            break
    gain, updates, figures = max(tops)
    least = int(np.argmin([_gain((one,), (other,)) for one, other in zip(figures, before, strict=True)]))
    return Choice(start, -updates, figures[least], before[least], gain >= LEAST_GAIN, history)


def _means(figures: Iterable[Figures]) -> Figures:
    """Over the trials, of each figure."""
    return tuple(fmean(each) for each in zip(*figures, strict=True))


def _gain(figures: Figures, before: Figures) -> float:
    """How many times as good, by the figure that gains least."""
    gains = [one / other if other > 0 else 1.0 for one, other in zip(figures, before, strict=True)]
    return min(gains) if not np.isnan(gains).any() else 0.0


def _told(figures: Figures) -> str:
    return " / ".join(f"{100 * each:.2f}" for each in figures)


def _named(start: Start | None) -> str:
    if start is None:
        return "the identity"
    return (
        f"centred, emphasis {start.emphasis:g}"
        if start.shrinkage is None
        else f"shrinkage {start.shrinkage:g}, emphasis {start.emphasis:g}"
    )


def _with_all_components(trial: Trial, spread: Spread | None, start: Start | None) -> Figures:
    rows = trial.lessons.rows
    if start is None or spread is None:
        return trial.judge(rows.as_it_is)
    mean, directions = spread.mean.float(), spread.directions.float()
    return trial.judge(lambda indices: ranked_alike(spread, start, (rows.at(indices) - mean) @ directions))


def spread_for(lessons: Lessons) -> Spread:
    """Of the rows that are learned from; of all, each a class of its own, where none has a class."""
    known = np.flatnonzero(lessons.labels.numpy() >= 0)
    chosen = lessons.rows.some(known if len(known) else np.arange(len(lessons.labels)))
    labels = lessons.labels[chosen] if len(known) else torch.zeros(len(chosen), dtype=torch.int64)
    return spread_of(lessons.rows.at(chosen), labels)


def made(lessons: Lessons, spread: Spread | None, start: Start | None, shape: Shape, seed: int) -> VectorMap:
    """A map at its start."""
    rows: Rows = lessons.rows
    shape = shape._replace(components=min(shape.components, rows.dimensions))  # few rows have few principal directions
    vector_map = VectorMap(rows.dimensions, *shape)
    with torch.no_grad():
        if start is None or spread is None:
            vector_map.offset.copy_(rows.origin)
        else:
            vector_map.offset.copy_(spread.mean)
            vector_map.weight.copy_(started(spread, start, shape.components))
        if shape.hidden is not None:
            noise = torch.randn(vector_map.inner.shape, generator=generator_for(seed, "hidden"))
            vector_map.inner.copy_(noise / rows.dimensions**0.5)
    return vector_map
