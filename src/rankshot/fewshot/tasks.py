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
    """K-shot N-way classification: of each of N classes K images are labelled, the others are to be classified.

    Args:
        way: classes of an episode, N; at least 2.
        shot: labelled images of each class, K; below `per_class`.
        per_class: images of each class in an episode, the labelled ones included.

    Raises:
        ValueError: if a number is out of range.

    Examples:
        >>> from rankshot import fewshot
        >>> task = fewshot.Classification(way=5, shot=1)
        >>> print(task)
        1-shot 5-way
        >>> task.way * (task.per_class - task.shot)  # queries of an episode: 5 * 19
        95
    """

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
    """N-way retrieval: every image of an episode is a query that ranks all the others; measured by mean average precision.

    Args:
        way: classes of an episode, N; at least 2.
        per_class: images of each class in an episode.

    Raises:
        ValueError: if a number is out of range.

    Examples:
        >>> from rankshot import fewshot
        >>> task = fewshot.Retrieval(way=5)
        >>> print(task)
        retrieval 5-way
        >>> task.way * task.per_class  # queries of an episode, each of which ranks the 49 others
        50
    """

    way: int
    per_class: int = 10

    def __post_init__(self) -> None:
        _check(self)

    def __str__(self) -> str:
        return f"retrieval {self.way}-way"


Task = Classification | Retrieval
"""What `evaluate` measures: a `Classification` or a `Retrieval`."""


def _check(task: Task) -> None:
    whole("way", task.way, 2, MOST_CLASSES)
    whole("per_class", task.per_class, 2, MOST_IMAGES)


def tasks_for(images: ImageSet, ways: Iterable[int], shots: Iterable[int]) -> list[Task]:
    """The tasks to evaluate on a data set: classification of every shot and way, then retrieval of every way.

    An episode has the paper's 20 images a class for classification and 10 for retrieval, or as many as the smallest class
    has if that is less.

    Args:
        images: the data set.
        ways: numbers of classes.
        shots: numbers of labelled images a class.

    Returns:
        The tasks.

    Raises:
        ValueError: if there are fewer classes than a task needs, or a class has a single image.

    Examples:
        >>> import numpy as np
        >>> from rankshot import data, fewshot
        >>> labels = np.repeat(np.arange(5), 12)  # 5 classes of 12 images
        >>> images = data.ImageSet(np.zeros((60, 1, 28, 28), np.uint8), labels, ("a", "b", "c", "d", "e"))
        >>> for task in fewshot.tasks_for(images, ways=[5], shots=[1, 5]):
        ...     print(task, "with", task.per_class, "images a class")
        1-shot 5-way with 12 images a class
        5-shot 5-way with 12 images a class
        retrieval 5-way with 10 images a class
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
