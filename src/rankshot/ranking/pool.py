"""Who is relevant to whom: labels in, the masks of the two sides out."""

from __future__ import annotations

import torch
from torch import Tensor


def relevance_of(labels: Tensor, ref_labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The `(relevance, valid)` that the functions of `ranking` take, (Q, G) bool each.

    An item is relevant to a query of the same label. Without `ref_labels` the batch ranks itself and every query is left
    out of its own ranking:

    >>> relevance, valid = relevance_of(torch.tensor([7, 7, 9]))
    >>> relevance
    tensor([[False,  True, False],
            [ True, False, False],
            [False, False, False]])
    >>> valid
    tensor([[False,  True,  True],
            [ True, False,  True],
            [ True,  True, False]])
    """
    same = labels[:, None] == (labels if ref_labels is None else ref_labels)
    valid = torch.ones_like(same)
    if ref_labels is None:
        valid.fill_diagonal_(False)
    return same & valid, valid


def relevant_counts(labels: Tensor, ref_labels: Tensor | None = None) -> Tensor:
    """(Q,) int64: how many items are relevant to each query, without a (Q, G) mask.

    >>> relevant_counts(torch.tensor([7, 7, 9]))
    tensor([1, 1, 0])
    """
    ordered = (labels if ref_labels is None else ref_labels).sort().values
    counts = torch.searchsorted(ordered, labels, right=True) - torch.searchsorted(ordered, labels)
    return counts if ref_labels is not None else counts - 1
