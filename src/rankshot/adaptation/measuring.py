"""How well vectors rank one another: mean average precision, and how often the nearest one is of the same class."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from rankshot.losses.checks import checked_batch
from rankshot.ranking import average_precision, relevance_of
from rankshot.ranking.checks import tensor_of
from rankshot.vectors import unit_vectors

VALUES_AT_ONCE = 2**22


class Ranked(NamedTuple):
    """How well vectors rank one another.

    Each is a query, left out of its own ranking. A query with nothing relevant does not count.

    Attributes:
        map: mean average precision, from 0 to 1.
        nearest: share of queries whose nearest vector is of their class.

    Examples:
        >>> import torch
        >>> from rankshot.adaptation import ranked
        >>> vectors = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> ranked(vectors, torch.tensor([0, 1, 0]))  # the one of class 1 lies between the two of class 0
        Ranked(map=0.5, nearest=0.0)
    """

    map: float
    nearest: float


def ranked(vectors: Tensor | NDArray[Any], labels: Tensor | NDArray[Any], queries: int | None = None) -> Ranked:
    """Rank vectors by the cosine to each of them, and measure the rankings.

    Args:
        vectors: (n, D) float, a tensor or a NumPy array; need not be normalised.
        labels: (n,) integers, the class of each, a tensor or a NumPy array.
        queries: how many of them rank, the first ones. None: all.

    Returns:
        A `Ranked`; nan if no query has anything relevant.

    Raises:
        TypeError: if vectors are not floating point, or labels are not integers.
        ValueError: if shapes do not fit.

    Examples:
        >>> import torch
        >>> from rankshot.adaptation import ranked
        >>> vectors = torch.tensor([[1.0, 0.1], [1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
        >>> ranked(vectors, torch.tensor([0, 0, 1, 1]))  # the other of its class comes first, always
        Ranked(map=1.0, nearest=1.0)
        >>> round(ranked(vectors, torch.tensor([0, 1, 0, 1])).map, 4)  # two at rank 2, two at rank 3
        0.4167
    """
    vectors = tensor_of("vectors", vectors)
    labels = checked_batch("vectors", vectors, "labels", tensor_of("labels", labels))
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
