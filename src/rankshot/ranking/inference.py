"""The three rankings of the paper: ground truth, predicted, and loss-augmented, always exact.

Every function takes `(scores, relevance, valid)`, one row a query, and returns one integer an item, its opponents above:
irrelevant items above a relevant one, relevant items above an irrelevant one; 0 where `valid` is False.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import solvers
from .checks import check_epsilon, check_sign, checked
from .metrics import Metric, get_metric
from .sorted_pool import SortedPool, other_side, predicted, split, truth

FEW_RELEVANT = 48  # so many are tried one by one; with more, bisection is faster
PROGRAMME_VALUES = 2**24  # that the dynamic programme keeps at once


def true_ranking(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """The ground truth ranking: every relevant item above every irrelevant one, whatever the scores.

    A ranking is one integer an item, its opponents above: for a relevant item the number of irrelevant items above it,
    for an irrelevant item the number of relevant items above it.

    Args:
        scores: (Q, G) float, one row a query; only their shape and device matter.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q, G) int64, opponents above; 0 where `valid` is False.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.5, 0.7]])
        >>> ranking.true_ranking(scores, torch.tensor([[False, True, True]]))  # both relevant items above the first item
        tensor([[2, 0, 0]])
    """
    return _items(scores, relevance, valid, truth)


def predicted_ranking(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """The predicted ranking: the items in the order of their scores (standard inference).

    A relevant and an irrelevant item with equal scores count as a mistake: the irrelevant item is above.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q, G) int64, opponents above (see `true_ranking`); 0 where `valid` is False.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.7, 0.5, 0.7]])
        >>> ranking.predicted_ranking(scores, torch.tensor([[False, True, True]]))  # the tie is a mistake
        tensor([[0, 1, 1]])
    """
    return _items(scores, relevance, valid, predicted)


def loss_augmented_ranking(
    scores: Tensor,
    relevance: Tensor,
    valid: Tensor | None = None,
    *,
    metric: str | Metric = "ap",
    epsilon: float = 1.0,
    sign: int = +1,
) -> Tensor:
    """The ranking that maximises F + sign * epsilon * L, exactly: F is its score, L the loss of the metric.

    With sign +1 it is a bad ranking that still scores well: what training moves away from. With sign -1 it is a good
    ranking that scores well: what training moves towards. Of equally good rankings it is the one with more mistakes.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.
        metric: a name, as in `get_metric`, or a `Metric`.
        epsilon: weight of the metric's loss, above 0.
        sign: +1 or -1.

    Returns:
        (Q, G) int64, opponents above (see `true_ranking`); 0 where `valid` is False.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, scores are not finite, or a setting is out of range.

    Examples:
        The scores rank both relevant items above the first item, but only just:

        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.5, 0.6, 0.7]])
        >>> relevance = torch.tensor([[False, True, True]])
        >>> ranking.predicted_ranking(scores, relevance)
        tensor([[2, 0, 0]])
        >>> ranking.loss_augmented_ranking(scores, relevance, epsilon=1.0)  # the margin is too small
        tensor([[0, 1, 1]])
        >>> ranking.loss_augmented_ranking(scores, relevance, epsilon=0.1)  # the margin is enough
        tensor([[2, 0, 0]])
    """
    metric = get_metric(metric)
    check_epsilon(epsilon)
    check_sign(sign)
    return _items(scores, relevance, valid, lambda sides: augmented(sides, metric, epsilon, sign))


def augmented(sides: SortedPool, metric: Metric, epsilon: float, sign: int) -> Tensor:
    """(Q, R): by the solver that fits, a decoupled one where it is exact, the dynamic programme elsewhere."""
    pull = pull_of(sides, metric, epsilon, sign)
    if decouples(metric, sign):
        solve = solvers.sweep if sides.relevant.shape[1] <= FEW_RELEVANT else solvers.bisection
        return solve(sides, pull, metric.step)
    queries, places = sides.relevant.shape
    rows = max(1, PROGRAMME_VALUES // solvers.programme_values(places, sides.irrelevant.shape[1]))
    chunks = [slice(start, start + rows) for start in range(0, queries, rows)]
    return torch.cat([solvers.programme(sides.rows(chosen), pull[chosen], metric.step) for chosen in chunks])


def decouples(metric: Metric, sign: int) -> bool:
    """Whether the irrelevant items can be placed one by one."""
    return sign > 0 and metric.concave


def pull_of(sides: SortedPool, metric: Metric, epsilon: float, sign: int) -> Tensor:
    """(Q, 1): what the metric's loss weighs against differences of scores, in the units of `solvers`."""
    return sign * epsilon / 2 * metric.scales(sides) * (sides.n_relevant * sides.n_irrelevant)


def _items(scores: Tensor, relevance: Tensor, valid: Tensor | None, infer: Callable[[SortedPool], Tensor]) -> Tensor:
    sides = split(*checked(scores, relevance, valid))
    above_relevant = infer(sides)
    above = sides.to_items(above_relevant, other_side(above_relevant, scores.shape[1]))
    return above.contiguous() if valid is None else above.where(valid, 0)
