"""Who is relevant to whom: labels in, the masks of the two sides out."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_tensor


def check_labels(name: str, labels: Tensor) -> None:
    """One label an image: a vector of integers."""
    check_tensor(name, labels)
    if labels.dim() != 1:
        raise ValueError(f"{name} must have one dimension, got shape {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"{name} must be integers, got {labels.dtype}: write {name}.long() if they are whole numbers")


EMPTY = -(2**62)  # the id of a place that holds no image, which nobody ranks; its label is the same number


class Counts(NamedTuple):
    """How many items of each side a query has, (Q,) int64 each."""

    relevant: Tensor
    irrelevant: Tensor


def relevance_of(
    labels: Tensor, ref_labels: Tensor | None = None, ids: Tensor | None = None, ref_ids: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The masks `(relevance, valid)` that the functions of `ranking` take, from labels.

    An item is relevant to a query of the same label. Without `ref_labels` the batch ranks itself, and a query is left out
    of its own ranking. Where the references contain the queries, give `ids` and `ref_ids`: a query then leaves out every
    item of its own id.

    Args:
        labels: (Q,) integers, of the queries.
        ref_labels: (G,) integers, of the items. None: the items are the queries.
        ids: (Q,) integers, which image each query is.
        ref_ids: (G,) integers, which image each item is.

    Returns:
        relevance (Q, G) bool, which items are relevant to a query, and valid (Q, G) bool, which items it ranks.

    Raises:
        TypeError: if labels or ids are not integer tensors.
        ValueError: if they have more than one dimension.

    Examples:
        Three images, of which two have the label 7. The third has nothing relevant:

        >>> import torch
        >>> from rankshot import ranking
        >>> relevance, valid = ranking.relevance_of(torch.tensor([7, 7, 9]))
        >>> relevance
        tensor([[False,  True, False],
                [ True, False, False],
                [False, False, False]])
        >>> valid
        tensor([[False,  True,  True],
                [ True, False,  True],
                [ True,  True, False]])
    """
    for name, tensor in (("labels", labels), ("ref_labels", ref_labels), ("ids", ids), ("ref_ids", ref_ids)):
        if tensor is not None:
            check_labels(name, tensor)
    same = labels[:, None] == (labels if ref_labels is None else ref_labels)
    if ids is not None and ref_ids is not None:
        valid = (ids[:, None] != ref_ids) & (ref_ids != EMPTY)
    else:
        valid = torch.ones_like(same)
        if ref_labels is None:
            valid.fill_diagonal_(False)
    return same & valid, valid


def side_counts(
    labels: Tensor, ref_labels: Tensor | None = None, ids: Tensor | None = None, ref_ids: Tensor | None = None
) -> Counts:
    """How many items are on each side of each query, without a (Q, G) mask; arguments as those of `relevance_of`.

    >>> side_counts(torch.tensor([7, 7, 9]))
    Counts(relevant=tensor([1, 1, 0]), irrelevant=tensor([1, 1, 2]))
    """
    item_labels = labels if ref_labels is None else ref_labels
    relevant, every = _occurrences(labels, item_labels), len(item_labels)
    if ids is not None and ref_ids is not None:
        own = _occurrences(ids, ref_ids) + (ref_ids == EMPTY).sum()
        own_relevant = _occurrences(*_joined(labels, item_labels, ids, ref_ids))
        return Counts(relevant - own_relevant, every - own - (relevant - own_relevant))
    itself = 1 if ref_labels is None else 0
    return Counts(relevant - itself, every - relevant)


def _occurrences(wanted: Tensor, among: Tensor) -> Tensor:
    ordered, wanted = among.sort().values, wanted.contiguous()
    return torch.searchsorted(ordered, wanted, right=True) - torch.searchsorted(ordered, wanted)


def _joined(one: Tensor, other_one: Tensor, two: Tensor, other_two: Tensor) -> tuple[Tensor, Tensor]:
    """One number for each pair of numbers, the same for the same pair: by where they stand among all in order."""
    places = []
    for here, there in ((one, other_one), (two, other_two)):
        ordered = torch.cat([here, there]).sort().values
        places.append([torch.searchsorted(ordered, each.contiguous()) for each in (here, there)])
    width = len(one) + len(other_one)
    return places[0][0] * width + places[1][0], places[0][1] * width + places[1][1]
