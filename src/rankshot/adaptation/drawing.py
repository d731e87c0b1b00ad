"""Batches of rows: some classes, and some rows of each. Classes may be as uneven as they come."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.randomness import generator_for

MOST_CLASSES = 32  # of a batch


class RowBatches:
    """Batches of about `batch_size` rows; batch number i depends on the seed and on i alone.

    >>> RowBatches(torch.tensor([0, 0, 0, 1, 1, 2]), batch_size=9, seed=0).draw(0).sort().values
    tensor([0, 1, 2, 3, 4, 5])
    """

    def __init__(self, labels: Tensor, batch_size: int, seed: int) -> None:
        """Of classes (n,); rows of a negative class are never drawn."""
        known = (labels >= 0).nonzero()[:, 0]
        _, classes, counts = torch.unique(labels[known], return_inverse=True, return_counts=True)
        self.rows = list(known[classes.argsort(stable=True)].split(counts.tolist()))  # type: ignore[no-untyped-call]
        self.classes = min(len(self.rows), MOST_CLASSES, max(2, batch_size // 2))
        self.a_class = max(2, batch_size // max(1, self.classes))
        self.seed = seed

    def draw(self, number: int) -> Tensor:
        """(about batch_size,) int64: a class with fewer rows than its share gives all that it has."""
        generator = generator_for(self.seed, "rows", number)
        chosen = torch.randperm(len(self.rows), generator=generator)[: self.classes]
        return torch.cat([_some(self.rows[index], self.a_class, generator) for index in chosen.tolist()])


def _some(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Without a permutation of a class of many rows, of which few come twice."""
    if len(rows) > 100 * count:
        return rows[torch.randint(len(rows), (count,), generator=generator).unique()]  # type: ignore[no-untyped-call]
    return rows[torch.randperm(len(rows), generator=generator)[:count]]
