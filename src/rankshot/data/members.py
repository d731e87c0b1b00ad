"""Which images each class has, as a table to draw episodes from."""

from __future__ import annotations

import torch
from torch import Tensor


class Members:
    """The images of every class, and draws of some classes with some images of each, without replacement."""

    def __init__(self, labels: Tensor) -> None:
        self.classes, labels, self.counts = torch.unique(labels.cpu(), return_inverse=True, return_counts=True)
        self.most = int(self.counts.max())
        column = torch.arange(self.most)
        starts = self.counts.cumsum(0) - self.counts
        by_class = labels.argsort(stable=True)
        self.table = by_class[(starts[:, None] + column).clamp(max=len(labels) - 1)]  # past a class's end anything
        self.past_the_end = column >= self.counts[:, None]

    def draw(self, episodes: int, way: int, per_class: int, generator: torch.Generator) -> Tensor:
        """(episodes, way, per_class) int64: indices of images."""
        chosen = torch.rand(episodes, len(self.classes), generator=generator).topk(way, dim=-1).indices
        keys = torch.rand(episodes, way, self.most, generator=generator).masked_fill_(self.past_the_end[chosen], -1.0)
        return self.table[chosen].gather(-1, keys.topk(per_class, dim=-1).indices)
