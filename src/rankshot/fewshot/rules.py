"""From similarities to a class: the nearest representative, or average precision when there are several."""

from __future__ import annotations

import torch
from torch import Tensor

NEARER = 1e-9  # what nearness counts beside average precision: it only breaks ties


def class_scores(similarities: Tensor) -> Tensor:
    """(..., way, shot) similarities of a query to the representatives -> (..., way) scores; the largest is the answer.

    With one representative a class, its similarity. With several, the average precision of the query's ranking of all of
    them if that class were the right one (a tie between classes is a mistake); of equal ones the class whose best
    representative is nearer.
    """
    if similarities.shape[-1] == 1:
        return similarities.squeeze(-1)
    similarities = similarities.double()
    return _average_precisions(similarities, similarities.flatten(-2).sort(-1).values)


def uneven_class_scores(similarities: Tensor, labels: Tensor, way: int) -> Tensor:
    """The same where classes have as many representatives as they please, in any order.

    (Q, S) similarities to representatives of classes 0 … way - 1 (S,) -> (Q, way); a class without any scores -inf.

    >>> uneven_class_scores(torch.tensor([[0.9, 0.8, 0.7]]), torch.tensor([1, 0, 1]), way=2).round(decimals=2)
    tensor([[0.5000, 0.8300]], dtype=torch.float64)
    """
    counts = torch.bincount(labels, minlength=way)
    by_class, starts = labels.argsort(stable=True), counts.cumsum(0) - counts
    if len(labels) and int(counts.min()) == int(counts.max()):
        return class_scores(similarities[:, by_class].view(len(similarities), way, -1))
    similarities = similarities.double()
    everyone = similarities.sort(-1).values
    scores = similarities.new_full((len(similarities), way), float("-inf"))
    for shot in sorted(set(counts.tolist())):
        classes = (counts == shot).nonzero().squeeze(-1)
        if shot:
            members = by_class[starts[classes, None] + torch.arange(shot, device=labels.device)]
            scores[:, classes] = _average_precisions(similarities[:, members], everyone)
    return scores


def _average_precisions(similarities: Tensor, everyone: Tensor) -> Tensor:
    """(..., classes, shot) of these classes, and (..., S) of all representatives, ascending -> (..., classes)."""
    own = similarities.sort(-1, descending=True).values
    not_below = everyone.shape[-1] - torch.searchsorted(everyone, own.flatten(-2).contiguous()).view_as(own)
    own_not_below = (own[..., None, :] >= own[..., :, None]).sum(-1)
    k = torch.arange(1, own.shape[-1] + 1, device=own.device, dtype=own.dtype)
    average_precision: Tensor = (k / (k + not_below - own_not_below)).mean(-1)
    return average_precision + NEARER * own[..., 0]
