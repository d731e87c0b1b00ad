"""Which classes a batch is of: any by chance, or such as are near each other, which are harder to tell apart."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from rankshot.limits import real

TIMES_AS_MANY = 2  # near classes are drawn from so many times as many as are needed, so that batches vary
ROWS = 1024  # of the table of all distances, at a time


class ClassChoice(Protocol):
    """Draws the classes of a batch."""

    def draw(self, available: int, wanted: int, generator: torch.Generator) -> Tensor:
        """(wanted,) int64, all different, from 0 to `available` - 1; random numbers come from `generator` alone."""
        ...


class ByChance:
    """Any classes."""

    def draw(self, available: int, wanted: int, generator: torch.Generator) -> Tensor:
        return torch.randperm(available, generator=generator)[:wanted]


class NearFirst:
    """A first class by chance, some of those nearest to it, and the others by chance.

    Args:
        neighbours: (C, K) int64: the nearest classes of each, the nearest first.
        near: how many of a batch's classes are drawn from them.
    """

    def __init__(self, neighbours: Tensor, near: int) -> None:
        self.neighbours, self.near = neighbours, near

    def draw(self, available: int, wanted: int, generator: torch.Generator) -> Tensor:
        if available != len(self.neighbours):
            raise ValueError(f"the neighbours of {len(self.neighbours)} classes are known, and there are {available}")
        order = torch.randperm(available, generator=generator)
        nearest = self.neighbours[order[0]]
        near = nearest[torch.randperm(len(nearest), generator=generator)[: self.near]]
        chosen = torch.cat([order[:1], near])
        others = order[~torch.isin(order, chosen)]
        return torch.cat([chosen, others])[:wanted]


def near_ones(classes: int, share: float) -> int:
    """How many of a batch's classes are to be near its first: a share of all others, and one at least.

    >>> near_ones(8, 1.0), near_ones(8, 0.5), near_ones(8, 0.01)
    (7, 4, 1)
    """
    return max(1, int(real("the share of near classes", share, 0, 1) * (classes - 1) + 0.5))


def candidates(available: int, near: int) -> int:
    """How many neighbours of a class the near ones are drawn from."""
    return min(TIMES_AS_MANY * near, available - 1)


def near_each_other(means: Tensor, classes: int, share: float) -> NearFirst:
    """For batches of so many classes, of which a share is near: by the distances of their means, (C, D).

    >>> near_each_other(torch.tensor([[0.0], [1.0], [5.0], [5.5]]), classes=2, share=1.0).neighbours.tolist()
    [[1, 2], [0, 2], [3, 1], [2, 1]]
    """
    near = near_ones(classes, share)
    return NearFirst(nearest_classes(means, candidates(len(means), near)), near)


def nearest_classes(means: Tensor, number: int) -> Tensor:
    """(C, D) -> (C, number) int64: of each class the nearest others, the nearest first; of equals the first one."""
    vectors = means.detach().cpu().double().flatten(1)
    vectors = vectors - vectors.mean(0)  # distances stay, and keep more digits
    squares = vectors.square().sum(-1)
    found = []
    for start in range(0, len(vectors), ROWS):
        distances = squares - 2 * vectors[start : start + ROWS] @ vectors.T  # but for what a row has in common
        distances.diagonal(start).fill_(torch.inf)
        found.append(distances.sort(dim=-1, stable=True).indices[:, :number])
    return torch.cat(found)
