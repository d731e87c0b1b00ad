"""Who is relevant to whom: labels in, the masks of the two sides out."""

from __future__ import annotations

import torch
from torch import Tensor

from .checks import check_tensor


def check_labels(name: str, labels: Tensor) -> None:
    """One label an image: a vector of integers."""
    check_tensor(name, labels)
    if labels.dim() != 1:
        raise ValueError(f"{name} must have one dimension, got shape {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"{name} must be integers, got {labels.dtype}")


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
    for name, tensor in (("labels", labels), ("ref_labels", ref_labels)):
        if tensor is not None:
            check_labels(name, tensor)
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
