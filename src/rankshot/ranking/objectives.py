"""SSVM and DLM: two rankings become weights on the scores.

The score of a ranking, F = 1 / (P N) * sum over pairs of y_kj (s_k - t_j), is linear in the scores: an item with `above`
of its `opponents` above it has the weight (opponents - 2 * above) / (P N). So an objective that combines such F is
`(weights * scores).sum()` plus a constant, its gradient is `weights`, and no graph through the inference is ever needed.

    SSVM:  alpha * F(augmented) - F(truth) + epsilon * L(augmented)             sign +1 only
    DLM:   sign / epsilon * (alpha * F(augmented) - F(predicted))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_alpha, check_epsilon, check_sign, checked
from .inference import augmented
from .metrics import Metric, get_metric
from .sorted_pool import SortedPool, predicted, split, truth

BOTH = 0  # signs at once


class Settings(NamedTuple):
    """What to optimise and how; made by `settings`, which checks it."""

    framework: str
    metric: Metric
    epsilon: float
    alpha: float
    sign: int


class Objective(NamedTuple):
    """The objective of each query, and its gradient by the scores; both 0 for a query that cannot be ranked.

    The tensors are plain numbers without a graph. To train by them, call backward on `(weights * scores).sum()`.

    Attributes:
        loss: (Q,) the objective of each query.
        weights: (Q, G) its gradient by the scores; 0 where `valid` is False.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.1]], requires_grad=True)
        >>> objective = ranking.ssvm(scores, torch.tensor([[False, True]]), alpha=1.0)
        >>> (objective.weights * scores).sum().backward()
        >>> scores.grad
        tensor([[ 2., -2.]])
    """

    loss: Tensor
    weights: Tensor


class Reference(NamedTuple):
    """What a framework sets against the loss-augmented ranking: factor * (alpha F(augmented) - F(above)) + constant."""

    factor: float
    above: Tensor
    constant: Tensor


def ssvm(
    scores: Tensor,
    relevance: Tensor,
    valid: Tensor | None = None,
    *,
    metric: str | Metric = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
) -> Objective:
    """Structural SVM: moves away from the loss-augmented ranking and towards the ground truth.

    The objective is `alpha * F(augmented) - F(truth) + epsilon * L(augmented)`, where F is the score of a ranking and L
    the metric's loss. With alpha 1 it is the structured hinge, an upper bound of `epsilon * L`.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.
        metric: a name, as in `get_metric`, or a `Metric`.
        epsilon: weight of the metric's loss, above 0.
        alpha: weight of the loss-augmented ranking. None: the paper's, 10.

    Returns:
        An `Objective`: the loss (Q,) and its gradient by the scores (Q, G).

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, scores are not finite, or a setting is out of range.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> loss, weights = ranking.ssvm(torch.tensor([[0.9, 0.1]]), torch.tensor([[False, True]]), alpha=1.0)
        >>> loss  # F(augmented) = 0.8, F(truth) = -0.8, and 1 - AP = 0.5
        tensor([2.1000])
        >>> weights  # a gradient step lowers the irrelevant item and raises the relevant one
        tensor([[ 2., -2.]])
    """
    return _objective(scores, relevance, valid, settings("ssvm", metric, epsilon, alpha))


def dlm(
    scores: Tensor,
    relevance: Tensor,
    valid: Tensor | None = None,
    *,
    metric: str | Metric = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
    sign: int = +1,
) -> Objective:
    """Direct loss minimisation: as epsilon goes to 0, its gradient is that of the expected metric itself.

    The objective is `sign / epsilon * (alpha * F(augmented) - F(predicted))`, where F is the score of a ranking. With
    sign +1 it moves away from a bad ranking that scores well, with sign -1 towards a good one.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.
        metric: a name, as in `get_metric`, or a `Metric`.
        epsilon: weight of the metric's loss, above 0.
        alpha: weight of the loss-augmented ranking. None: the paper's, 10, and 1 for sign -1.
        sign: +1 (positive update) or -1 (negative update).

    Returns:
        An `Objective`: the loss (Q,) and its gradient by the scores (Q, G).

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, scores are not finite, or a setting is out of range.

    Examples:
        The relevant items are above the first item, but only just:

        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.5, 0.6, 0.7]])
        >>> loss, weights = ranking.dlm(scores, torch.tensor([[False, True, True]]), alpha=1.0)
        >>> loss
        tensor([-0.3000])
        >>> weights  # a gradient step lowers the irrelevant item and raises the relevant ones
        tensor([[ 2., -1., -1.]])
    """
    return _objective(scores, relevance, valid, settings("dlm", metric, epsilon, alpha, sign))


def settings(
    framework: str = "dlm",
    metric: str | Metric = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
    sign: int = +1,
) -> Settings:
    """Checked, with alpha's default filled in: the paper's 10, and 1 for the negative update."""
    check_framework(framework)
    check_epsilon(epsilon)
    check_sign(sign)
    if framework == "ssvm" and sign < 0:
        raise ValueError(f"ssvm has no negative update, got sign {sign}: use sign +1, or the framework 'dlm'")
    if alpha is None:
        alpha = 10.0 if sign > 0 else 1.0
    check_alpha(alpha)
    return Settings(framework, get_metric(metric), float(epsilon), float(alpha), int(sign))


def of_each_sign(
    framework: str = "dlm",
    metric: str | Metric = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
    sign: int = +1,
) -> tuple[Settings, ...]:
    """One for each sign of an update; sign 0 is both, of which an objective is the mean. `alpha` is then that of the
    positive one: the negative one has the paper's, 1."""
    if sign not in (+1, -1, BOTH):
        raise ValueError(f"sign must be +1 (positive update), -1 (negative update) or 0 (the mean of both), got {sign!r}")
    if sign != BOTH:
        return (settings(framework, metric, epsilon, alpha, sign),)
    if check_framework(framework) == "ssvm":
        raise ValueError("ssvm has no negative update, got sign 0 (both updates): use sign +1, or the framework 'dlm'")
    return settings(framework, metric, epsilon, alpha, +1), settings(framework, metric, epsilon, 1.0, -1)


def check_framework(framework: str) -> str:
    if not isinstance(framework, str) or framework not in FRAMEWORKS:
        raise ValueError(f"unknown framework {framework!r}: use one of {', '.join(map(repr, FRAMEWORKS))}")
    return framework


class SideWeights(NamedTuple):
    """An objective of sorted sides: what each place weighs (Q, R) and (Q, G), anything past a query's end; and (Q,) what
    the objective has besides."""

    relevant: Tensor
    irrelevant: Tensor
    constant: Tensor


def side_weights(sides: SortedPool, chosen: Settings) -> SideWeights:
    above = augmented(sides, chosen.metric, chosen.epsilon, chosen.sign)
    factor, reference, constant = FRAMEWORKS[chosen.framework](sides, above, chosen)
    alpha, n_relevant, n_irrelevant = chosen.alpha, sides.n_relevant.to(sides.dtype), sides.n_irrelevant.to(sides.dtype)
    per_pair = (factor / (n_relevant * n_irrelevant)).where(sides.rankable, 0.0)
    of_relevant = per_pair * ((alpha - 1) * n_irrelevant + 2 * (reference - alpha * above.to(sides.dtype)))
    # The same for the irrelevant items, whose opponents above are running counts of n_k: one running sum for both rankings.
    passed = sides.irrelevant.new_zeros(len(per_pair), sides.irrelevant.shape[1] + 1)
    passed.scatter_add_(-1, reference, torch.full_like(of_relevant, 2.0))
    passed.scatter_add_(-1, above, torch.full_like(of_relevant, -2.0 * alpha))
    of_irrelevant = per_pair * passed.cumsum(-1)[:, :-1].add_((alpha - 1) * n_relevant)
    return SideWeights(of_relevant, of_irrelevant, constant)


def on_sides(sides: SortedPool, scores: Tensor, chosen: Settings) -> Objective:
    """The objective where the sides are sorted already; `scores` are those that were split, finite everywhere."""
    of_relevant, of_irrelevant, constant = side_weights(sides, chosen)
    weights = sides.to_items(of_relevant, of_irrelevant)
    return Objective((weights * scores).sum(-1) + constant, weights)


def _ssvm(sides: SortedPool, above: Tensor, chosen: Settings) -> Reference:
    task_loss = chosen.metric.regret(sides, above).where(sides.rankable, 0.0).squeeze(-1)
    return Reference(1.0, truth(sides), chosen.epsilon * task_loss)


def _dlm(sides: SortedPool, above: Tensor, chosen: Settings) -> Reference:
    return Reference(chosen.sign / chosen.epsilon, predicted(sides), sides.relevant.new_zeros(len(sides.relevant)))


FRAMEWORKS: dict[str, Callable[[SortedPool, Tensor, Settings], Reference]] = {"ssvm": _ssvm, "dlm": _dlm}


def _objective(scores: Tensor, relevance: Tensor, valid: Tensor | None, chosen: Settings) -> Objective:
    inputs = checked(scores, relevance, valid)
    loss, weights = on_sides(split(*inputs), inputs.scores, chosen)
    return Objective(loss, weights.contiguous() if valid is None else weights.where(valid, 0.0))
