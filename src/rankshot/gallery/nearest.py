"""The vectors that are nearest to a query, by comparing it with every one of them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .store import Vectors

ROWS_AT_ONCE = 2**17
SIMILARITIES_AT_ONCE = 2**24
FEW = 8  # where fewer than one of so many rows are asked for, these are taken out first

Found = list[tuple[NDArray[np.int64], NDArray[np.float32]]]


def nearest(
    vectors: Vectors, dead: NDArray[np.bool_] | None, queries: Vectors, k: int, rows: NDArray[np.int64] | None = None
) -> Found:
    """For each query the places of the k nearest vectors and their dot products, the nearest first.

    Of vectors that are as near as one another, the earlier comes first.

    dead   (n,) those that do not count
    rows   the only ones that count; they are not dead
    """
    if rows is not None and len(rows) * FEW < len(vectors):
        found = _of_all(vectors[rows], None, queries, k)
        return [(rows[indices], similarities) for indices, similarities in found]
    if rows is not None:
        dead = np.ones(len(vectors), bool)
        dead[rows] = False
    return _of_all(vectors, dead, queries, k)


def _of_all(vectors: Vectors, dead: NDArray[np.bool_] | None, queries: Vectors, k: int) -> Found:
    hidden = None if dead is None else torch.from_numpy(dead)
    found: Found = []
    at_once = max(1, SIMILARITIES_AT_ONCE // max(1, min(len(vectors), ROWS_AT_ONCE)))
    for chunk in torch.split(torch.from_numpy(queries), at_once):
        best, indices = torch.empty(len(chunk), 0), torch.empty(len(chunk), 0, dtype=torch.long)
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            similarities = chunk @ torch.from_numpy(vectors[part]).T
            if hidden is not None:
                similarities.masked_fill_(hidden[part], -torch.inf)
            values, where = _top(similarities, k)
            best, indices = torch.cat([best, values], 1), torch.cat([indices, where + start], 1)
            best, order = _top(best, k)
            indices = indices.gather(1, order)
        for similarities, rows in zip(best.numpy(), indices.numpy(), strict=True):
            counts = similarities > -np.inf
            found.append((rows[counts], similarities[counts]))
    return found


def _top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, the largest first and of equal ones the first; torch's topk takes any of these."""
    most = min(k, values.shape[1])
    top = values.topk(min(most + 1, values.shape[1]))
    ties = ((top.values[:, 1:] == top.values[:, :-1]) & (top.values[:, 1:] > -torch.inf)).any(1)
    best, indices = top.values[:, :most].clone(), top.indices[:, :most].clone()
    for row in ties.nonzero()[:, 0].tolist():
        order = values[row].sort(descending=True, stable=True)
        best[row], indices[row] = order.values[:most], order.indices[:most]
    return best, indices
