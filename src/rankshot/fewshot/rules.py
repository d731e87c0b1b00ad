"""From the embeddings of a support set to the class of a query: the rules that an embedding network can answer by.

A rule takes unit vectors of some support sets that share their labels (E, S, D), the labels (S,), how many classes there
are, and queries (E, Q, D); it gives scores (E, Q, way), of which the largest is the answer. Classes may have as many
examples as they please. With one example a class, all rules but logistic regression are the same.

ap         the paper's: the class whose examples the query ranks best, by average precision
nearest    the class of the nearest example
prototype  the class whose mean is nearest
logistic   logistic regression on the examples
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rankshot.ranking.checks import check_tensor

from .logistic import logistic_weights

NEARER = 1e-9  # what nearness counts beside average precision: it only breaks ties


def check_rule(name: str) -> str:
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(f"unknown rule {name!r}: there is {', '.join(map(repr, RULES))}")
    return name


def scores_by(rule: str, support: Tensor, labels: Tensor, way: int, queries: Tensor) -> Tensor:
    """(E, S, D), (S,), (E, Q, D) -> (E, Q, way)."""
    if rule in LINEAR:
        weights = LINEAR[rule](support, labels, way)
        return queries.to(weights.dtype) @ weights.mT
    similarities = queries @ support.mT
    if rule == "ap":
        return uneven_class_scores(similarities.flatten(0, 1), labels, way).view(*similarities.shape[:2], way)
    nearest = similarities.new_full((*similarities.shape[:2], way), float("-inf"))
    return nearest.scatter_reduce_(2, labels.expand_as(similarities), similarities, "amax")


def prototypes(support: Tensor, labels: Tensor, way: int) -> Tensor:
    """(..., S, D) unit vectors of classes (S,) -> (..., way, D): the directions of the classes' means."""
    return nn.functional.normalize(class_sums(support, labels, way), dim=-1)


def class_sums(support: Tensor, labels: Tensor, way: int) -> Tensor:
    """(..., S, D), (S,) -> (..., way, D)."""
    return support.new_zeros(*support.shape[:-2], way, support.shape[-1]).index_add_(-2, labels, support)


# Rules that learn a vector of each class, (E, S, D) and (S,) -> (E, way, D): its product with a query is the score.
LINEAR: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {"prototype": prototypes, "logistic": logistic_weights}
RULES = ("ap", "nearest", *LINEAR)
BEST = "logistic"  # of photographs, with one example a class and with several (docs/benchmarks.md)


def class_scores(similarities: Tensor) -> Tensor:
    """The paper's decision rule: from similarities of a query to the support images to a score of each class.

    With one support image a class, the score is its similarity. With several, it is the average precision of the query's
    ranking of all support images, with those of this class as the relevant ones. A tie between classes is a mistake. Of
    classes with equal scores the one with the more similar support image wins.

    Args:
        similarities: (..., way, shot) float, of a query to each support image of each class.

    Returns:
        (..., way) scores; the largest is the answer.

    Raises:
        TypeError: if similarities are no tensor.
        ValueError: if their shape does not fit.

    Examples:
        Two classes, two shots. The query ranks the four support images: class 0, class 1, class 1, class 0:

        >>> import torch
        >>> from rankshot import fewshot
        >>> similarities = torch.tensor([[0.9, 0.1], [0.8, 0.7]])
        >>> fewshot.class_scores(similarities).round(decimals=4)  # (1/1 + 2/4) / 2 and (1/2 + 2/3) / 2
        tensor([0.7500, 0.5833], dtype=torch.float64)
    """
    check_tensor("similarities", similarities)
    if similarities.dim() < 2:
        raise ValueError(f"similarities must be (..., way, shot), got shape {tuple(similarities.shape)}")
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
