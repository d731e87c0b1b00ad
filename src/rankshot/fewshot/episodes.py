"""Episodes: which images of which classes, for very many episodes at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from rankshot.data.members import Members
from rankshot.limits import whole
from rankshot.randomness import generator_for
from rankshot.ranking.pool import check_labels

from .tasks import Task

CHUNK = 2**24  # random numbers at a time
MOST_EPISODES = 1_000_000
KEPT, MOST_KEPT = 8, 2**22  # draws that are kept, and indices of each: whoever evaluates asks the same again and again


def draw_episodes(labels: Tensor, task: Task, episodes: int, seed: int) -> Tensor:
    """Draw episodes: which classes, and which images of each, without replacement.

    The same labels, task and seed give the same episodes. For classification the first `shot` images of each class are
    the support set, the others the queries.

    Args:
        labels: (n,) integers, the class of each image.
        task: a `Classification` or a `Retrieval`.
        episodes: how many.
        seed: of the random numbers.

    Returns:
        (episodes, way, per_class) int64, indices of images.

    Raises:
        TypeError: if labels are no tensor of integers.
        ValueError: if there are fewer classes, or fewer images in a class, than the task needs.

    Examples:
        >>> import torch
        >>> from rankshot import fewshot
        >>> labels = torch.arange(60) // 6  # 10 classes of 6 images
        >>> episodes = fewshot.draw_episodes(labels, fewshot.Retrieval(way=5, per_class=4), episodes=100, seed=0)
        >>> episodes.shape
        torch.Size([100, 5, 4])
        >>> first = labels[episodes[0]]  # the labels of the first episode: one class a row
        >>> bool((first == first[:, :1]).all()), len(first.unique())
        (True, 5)
    """
    check_labels("labels", labels)
    whole("episodes", episodes, 1, MOST_EPISODES)
    if episodes * task.way * task.per_class > MOST_KEPT:
        return _draw(labels, task, episodes, seed)
    return _kept(np.asarray(labels.cpu(), np.int64).tobytes(), task, episodes, seed).clone()


@lru_cache(KEPT)
def _kept(labels: bytes, task: Task, episodes: int, seed: int) -> Tensor:
    return _draw(torch.from_numpy(np.frombuffer(labels, np.int64).copy()), task, episodes, seed)


def _draw(labels: Tensor, task: Task, episodes: int, seed: int) -> Tensor:
    members = Members(labels)
    if task.way > len(members.classes):
        raise ValueError(f"{task} needs {task.way} classes, but there are {len(members.classes)}")
    if int(members.counts.min()) < task.per_class:
        smallest = int(members.classes[members.counts.argmin()])
        fewest = int(members.counts.min())
        raise ValueError(f"{task} needs {task.per_class} images a class, but class {smallest} has {fewest}")
    generator = generator_for(seed, task)
    size = max(1, CHUNK // (task.way * members.most))
    chunks = (min(size, episodes - start) for start in range(0, episodes, size))
    return torch.cat([members.draw(count, task.way, task.per_class, generator) for count in chunks])
