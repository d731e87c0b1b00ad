"""Which start, and how many updates: found on what was held out. The map of all rows is then made in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
FEWEST_ANCHORS = 10  # marked rows of which some can be held out

Embed = Callable[[Any], Tensor]


class Trial(NamedTuple):
    """What a map learns from, and what tells how well it does, from 0 to 1, by the vectors of any rows."""

    lessons: Lessons
    judge: Callable[[Embed], float]


class Choice(NamedTuple):
    """What was found best.

    start        None: the identity
    updates      after which it was best
    held_out     mean average precision there, and that of X as it is (`before`)
    history      what was seen on the way
    """

    start: Start | None
    updates: int
    held_out: float
    before: float
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


def _judged_by_classes(fold: Fold, labels: Tensor, embed: Embed) -> float:
    rows = np.concatenate([fold.held_out, fold.company])
    return ranked(embed(rows), labels[rows], len(fold.held_out)).map


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


def _judged_by_marks(batch: MarkedBatch, embed: Embed) -> float:
    scores = unit_vectors(embed(batch.anchors)) @ unit_vectors(embed(batch.items)).T
    return float(average_precision(scores, batch.relevant, batch.relevant | batch.irrelevant).nanmean())


def choose(
    trials: Sequence[Trial],
    starts: Sequence[Start | None],
    shape: Shape,
    recipe: Recipe,
    patience: int,
    tell: Callable[[str], None],
) -> Choice:
    """The start that does best without any update; then so many updates as help, until `patience` evaluations do not."""
    before = fmean(trial.judge(trial.lessons.rows.as_it_is) for trial in trials)
    spreads = [spread_for(trial.lessons) if list(starts) != [None] else None for trial in trials]
    pairs = list(zip(trials, spreads, strict=True))
    scores = [fmean(_with_all_components(trial, spread, start) for trial, spread in pairs) for start in starts]
    start = starts[int(np.nanargmax(scores)) if not np.isnan(scores).all() else 0]
    learners = [
        Learner(made(trial.lessons, spread, start, shape, recipe.seed), trial.lessons, recipe) for trial, spread in pairs
    ]
    # The identity is itself, to the last digit.
    score = (
        before if start is None else fmean(trial.judge(one.vectors) for trial, one in zip(trials, learners, strict=True))
    )
    tops, history = [(score, 0)], [{"update": 0, "held_out": score}]
    tell(f"held out: mAP {100 * before:.2f} as it is, {100 * score:.2f} at the start ({start or 'the identity'})")
    every = max(1, recipe.max_iter // EVALUATIONS)
    for update in range(every, recipe.max_iter + 1, every):
        loss = fmean(learner.learn(update) for learner in learners)
        score = fmean(trial.judge(learner.vectors) for trial, learner in zip(trials, learners, strict=True))
        history.append({"update": update, "loss": loss, "held_out": score})
        tell(f"update {update}/{recipe.max_iter}  loss {loss:.4f}  held out: mAP {100 * score:.2f}")
        tops.append((score, -update))
        if update - -max(tops)[1] >= patience * every:
            break
    held_out, updates = max(tops)
    return Choice(start, -updates, held_out, before, history)


def _with_all_components(trial: Trial, spread: Spread | None, start: Start | None) -> float:
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
