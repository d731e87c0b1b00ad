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
    """One value a query, and what each score weighs in it; both 0 for a query that cannot be ranked.

    Plain numbers, without a graph: `(weights * scores).sum()` is what to call backward on.

    loss     (Q,)    the objective of each query
    weights  (Q, G)  its gradient by the scores
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
    """Structural SVM: away from the loss-augmented ranking, towards the ground truth. With alpha 1, the structured hinge.

    >>> loss, weights = ssvm(torch.tensor([[0.9, 0.1]]), torch.tensor([[False, True]]), alpha=1.0)
    >>> loss, weights  # the irrelevant item must come down, the relevant one up
    (tensor([2.1000]), tensor([[ 2., -2.]]))
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
    """Direct loss minimisation: away from the worst good ranking (sign +1) or towards the best one (sign -1)."""
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
