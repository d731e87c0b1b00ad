"""Episodes: which images of which classes, for very many episodes at once."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.randomness import generator_for

from .tasks import Task

CHUNK = 2**24  # random numbers at a time


def draw_episodes(labels: Tensor, task: Task, episodes: int, seed: int) -> Tensor:
    """(episodes, way, per_class) int64: indices of images, drawn without replacement; the same for the same seed.

    For classification the first `shot` of each class are the labelled ones.

    >>> from rankshot.fewshot import Retrieval
    >>> draw_episodes(torch.arange(60) // 6, Retrieval(way=5, per_class=4), episodes=100, seed=0).shape
    torch.Size([100, 5, 4])
    """
    classes, labels, counts = torch.unique(labels.cpu(), return_inverse=True, return_counts=True)
    if task.way > len(classes):
        raise ValueError(f"{task} needs {task.way} classes, but there are {len(classes)}")
    if int(counts.min()) < task.per_class:
        smallest = int(classes[counts.argmin()])
        raise ValueError(f"{task} needs {task.per_class} images a class, but class {smallest} has {int(counts.min())}")
    most = int(counts.max())
    by_class = labels.argsort(stable=True)
    place = torch.arange(most)
    starts = counts.cumsum(0) - counts
    members = by_class[(starts[:, None] + place).clamp(max=len(labels) - 1)]  # (classes, most), past the end anything
    past_the_end = place >= counts[:, None]

    generator = generator_for(seed, task)
    size = max(1, CHUNK // (task.way * most))
    drawn = []
    for start in range(0, episodes, size):
        some = min(size, episodes - start)
        chosen = torch.rand(some, len(classes), generator=generator).topk(task.way, dim=-1).indices
        keys = torch.rand(some, task.way, most, generator=generator).masked_fill_(past_the_end[chosen], -1.0)
        drawn.append(members[chosen].gather(-1, keys.topk(task.per_class, dim=-1).indices))
    return torch.cat(drawn)
