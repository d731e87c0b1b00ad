"""How well vectors rank one another: mean average precision, and how often the nearest one is of the same class."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankshot.ranking import average_precision, relevance_of
from rankshot.vectors import unit_vectors

VALUES_AT_ONCE = 2**22


class Ranked(NamedTuple):
    """Of all vectors as queries, each left out of its own ranking; those with nothing relevant do not count.

    map       mean average precision, from 0 to 1
    nearest   share of queries whose nearest vector is of their class
    """

    map: float
    nearest: float


def ranked(vectors: Tensor, labels: Tensor, queries: int | None = None) -> Ranked:
    """Vectors (n, D) of classes (n,), ranked by cosine.

    queries   how many of them rank, the first ones. None: all

    >>> ranked(torch.tensor([[1.0, 0.1], [1.0, 0.0], [0.0, 1.0], [0.1, 1.0]]), torch.tensor([0, 0, 1, 1]))
    Ranked(map=1.0, nearest=1.0)
    """
    units, ids = unit_vectors(vectors), torch.arange(len(vectors))
    precisions, hits = [], []
    for chunk in ids[:queries].split(max(1, VALUES_AT_ONCE // max(1, len(vectors)))):  # type: ignore[no-untyped-call]
        scores = units[chunk] @ units.T
        relevance, valid = relevance_of(labels[chunk], labels, chunk, ids)
        precisions.append(average_precision(scores, relevance, valid))
        nearest = scores.masked_fill(~valid, -torch.inf).argmax(-1)
        hits.append(relevance.gather(-1, nearest[:, None])[:, 0])
    found, right = torch.cat(precisions), torch.cat(hits)
    counts = ~found.isnan()
    if not bool(counts.any()):
        return Ranked(float("nan"), float("nan"))
    return Ranked(float(found[counts].double().mean()), float(right[counts].double().mean()))
