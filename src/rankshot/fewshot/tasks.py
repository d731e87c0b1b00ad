"""The paper's two tasks on classes never seen in training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rankshot.data import ImageSet
from rankshot.limits import shown, whole

MOST_CLASSES = MOST_IMAGES = 10**6  # of an episode, and of a class in it


@dataclass(frozen=True)
class Classification:
    """K-shot N-way: of `per_class` images of each of `way` classes, `shot` are labelled, the others to be classified."""

    way: int
    shot: int
    per_class: int = 20

    def __post_init__(self) -> None:
        _check(self)
        if not isinstance(self.shot, int) or not 1 <= self.shot < self.per_class:
            got = f"{shown(self.shot)} of {self.per_class} images"
            raise ValueError(f"shot must be from 1 to {self.per_class - 1}, got {got}")

    def __str__(self) -> str:
        return f"{self.shot}-shot {self.way}-way"


@dataclass(frozen=True)
class Retrieval:
    """N-way: every one of `per_class` images of each of `way` classes ranks all the others; measured by mAP."""

    way: int
    per_class: int = 10

    def __post_init__(self) -> None:
        _check(self)

    def __str__(self) -> str:
        return f"retrieval {self.way}-way"


Task = Classification | Retrieval


def _check(task: Task) -> None:
    whole("way", task.way, 2, MOST_CLASSES)
    whole("per_class", task.per_class, 2, MOST_IMAGES)


def tasks_for(images: ImageSet, ways: Iterable[int], shots: Iterable[int]) -> list[Task]:
    """Classification of every shot and way, then retrieval of every way.

    An episode has the paper's 20 and 10 images a class, or as many as the smallest class has where that is less.
    """
    ways, shots, smallest = sorted(set(ways)), sorted(set(shots)), images.smallest_class
    for way in ways:
        if way > len(images.classes):
            raise ValueError(f"{way}-way tasks need {way} classes, but there are {len(images.classes)}")
    if smallest < 2:
        alone = images.classes[int(np.bincount(images.labels).argmin())]
        raise ValueError(f"class {alone!r} has a single image: a task needs two of each class at least")
    tasks: list[Task] = [Classification(way, shot, per_class=min(20, smallest)) for shot in shots for way in ways]
    return [*tasks, *(Retrieval(way, per_class=min(10, smallest)) for way in ways)]
