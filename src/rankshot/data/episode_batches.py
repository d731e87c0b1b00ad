"""Training batches of other kinds than the paper's: whole episodes, and any images at all."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import whole
from rankshot.randomness import generator_for

from .batches import MOST_IMAGES
from .members import Members


class EpisodeSampler:
    """Batches of `tasks` episodes, each of `way` classes with `per_class` images, drawn without replacement.

    Batch number i depends on the seed and on i alone. Its images come task by task, class by class.

    >>> sampler = EpisodeSampler(torch.arange(100) // 10, way=3, per_class=4, tasks=2)
    >>> indices = sampler.draw(0)
    >>> len(indices), (indices // 10).view(2, 3, 4).unique_consecutive(dim=-1).shape
    (24, torch.Size([2, 3, 1]))
    """

    def __init__(self, labels: Tensor, way: int, per_class: int, tasks: int = 1, *, seed: int = 0) -> None:
        self.device, self.members = labels.device, Members(labels)
        classes, smallest = len(self.members.classes), int(self.members.counts.min())
        if not 2 <= way <= classes:
            raise ValueError(f"an episode must have 2 to {classes} classes, as many as there are, got {way}")
        if not 2 <= per_class <= smallest:
            raise ValueError(
                f"an episode takes 2 to {smallest} images a class, as many as the smallest has, got {per_class}: a batch "
                f"can have up to {tasks * way * smallest} images"
            )
        whole("tasks", tasks, 1, MOST_IMAGES // (way * per_class))
        self.way, self.per_class, self.tasks, self.seed = way, per_class, tasks, seed

    def draw(self, number: int) -> Tensor:
        """(tasks * way * per_class,) int64 on the labels' device, drawn on the CPU as all batches are."""
        drawn = self.members.draw(self.tasks, self.way, self.per_class, generator_for(self.seed, number))
        return drawn.flatten().to(self.device, non_blocking=True)


class ImageSampler:
    """Batches of any images, whatever their class, each drawn from all of them.

    >>> ImageSampler(torch.arange(100) // 10, batch_size=7).draw(0).shape
    torch.Size([7])
    """

    def __init__(self, labels: Tensor, batch_size: int, *, seed: int = 0) -> None:
        whole("batch_size", batch_size, 2, MOST_IMAGES)
        self.device, self.images, self.batch_size, self.seed = labels.device, len(labels), batch_size, seed

    def draw(self, number: int) -> Tensor:
        """(batch_size,) int64 on the labels' device, drawn on the CPU as all batches are."""
        drawn = torch.randint(self.images, (self.batch_size,), generator=generator_for(self.seed, number))
        return drawn.to(self.device, non_blocking=True)
