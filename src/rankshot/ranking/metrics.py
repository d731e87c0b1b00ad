"""Ranking metrics: what a ranking is worth, and what each mistake in it costs.

Every metric here is a sum over the relevant items of a ranking. With k = 1, 2, … counting the relevant items from the
top and n_k the irrelevant items above the k-th of them,

    metric(truth) - metric(ranking) = scale * sum_k loss(k, n_k),        loss(k, 0) = 0.

`scale * loss(k, n)` is the loss table l_k(n) of the papers; `step(k, n) = loss(k, n) - loss(k, n - 1)`, what one more
irrelevant item above costs, is all that inference looks at. A new metric is one `Metric`.

A relevant and an irrelevant item with equal scores count as a mistake, in every metric.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rankshot.limits import whole
from rankshot.registry import Registry

from .checks import checked
from .sorted_pool import SortedPool, counting, predicted, split

MOST_ITEMS = 2**24  # up to which all whole numbers are different in float32
MOST_VALUES = 2**27  # of a loss table
Elementwise = Callable[[Tensor, Tensor], Tensor]


def _one(n_relevant: Tensor) -> Tensor:
    return torch.ones_like(n_relevant)


@dataclass(frozen=True)
class Metric:
    """One ranking metric. The callables take float tensors of whole numbers and broadcast.

    loss(k, n)        what n irrelevant items above the k-th relevant one cost, unscaled; 0 for n = 0
    step(k, n)        loss(k, n) - loss(k, n - 1), written so that no digits cancel
    scale(P, N, k)    (Q, 1), (Q, 1), (R,) -> (Q, 1): the factor in front, for P relevant and N irrelevant items, both at
                      least 1; k holds 1..R with R >= P, for sums over the ideal ranking
    best(P)           the metric of the ground truth
    concave           step never rises with n: the irrelevant items then decouple, and inference is fast. Say so only if it
                      is true, or rankings are not the best ones.
    needs_irrelevant  the metric is not defined where every item is relevant

    `loss` and `step` are also called past the items that there are (k = 0 and k > P, n > N). What they return there does
    not matter, but they must return.
    """

    name: str
    loss: Elementwise
    step: Elementwise
    scale: Callable[[Tensor, Tensor, Tensor], Tensor]
    best: Callable[[Tensor], Tensor] = _one
    concave: bool = False
    needs_irrelevant: bool = False

    def value(self, sides: SortedPool, above: Tensor) -> Tensor:
        """(Q,) what each ranking, n_k (Q, R), is worth; nan where there is nothing to rank."""
        defined = sides.rankable if self.needs_irrelevant else sides.n_relevant > 0
        worth = self.best(sides.n_relevant.to(sides.dtype)) - self.regret(sides, above)
        return worth.masked_fill(~defined, torch.nan).squeeze(-1)

    def regret(self, sides: SortedPool, above: Tensor) -> Tensor:
        """(Q, 1) the task loss L: what the ranking loses against the ground truth."""
        k = counting(sides.relevant.shape[1], sides.relevant)
        losses = self.loss(k, above.to(sides.dtype))
        return losses.where(k <= sides.n_relevant, 0.0).sum(-1, keepdim=True) * self.scales(sides)

    def __reduce__(self) -> tuple[Callable[..., Metric], tuple[object, ...]]:
        """Metrics that have a name are copied, and sent to other processes, by it: functions cannot be."""
        if _find(self.name) is self:
            return get_metric, (self.name,)
        return Metric, tuple(getattr(self, field.name) for field in fields(self))

    def scales(self, sides: SortedPool) -> Tensor:
        """(Q, 1) the factor of each query; finite also where a side is empty."""
        n_relevant = sides.n_relevant.clamp(min=1).to(sides.dtype)
        n_irrelevant = sides.n_irrelevant.clamp(min=1).to(sides.dtype)
        return self.scale(n_relevant, n_irrelevant, counting(sides.relevant.shape[1], sides.relevant))


def _discount(rank: Tensor) -> Tensor:
    return 1 / torch.log2(1 + rank)


def _discount_drop(rank: Tensor) -> Tensor:
    """discount(rank - 1) - discount(rank), without subtracting two nearly equal numbers."""
    return torch.log1p(1 / rank) / math.log(2) * _discount(rank - 1) * _discount(rank)


AP = Metric(
    "ap",
    loss=lambda k, n: n / (k + n),
    step=lambda k, n: k / ((k + n - 1) * (k + n)),
    scale=lambda P, N, k: 1 / P,
    concave=True,
)
NDCG = Metric(
    "ndcg",
    loss=lambda k, n: _discount(k) - _discount(k + n),
    step=lambda k, n: _discount_drop(k + n),
    scale=lambda P, N, k: 1 / _discount(k).where(k <= P, 0.0).sum(-1, keepdim=True),
    concave=True,
)
AUC = Metric(
    "auc",
    loss=lambda k, n: n + 0 * k,
    step=lambda k, n: torch.ones_like(k + n),
    scale=lambda P, N, k: 1 / (P * N),
    concave=True,
    needs_irrelevant=True,
)
RECIPROCAL_RANK = Metric(
    "rr",
    loss=lambda k, n: (k == 1) * (n / (1 + n)),
    step=lambda k, n: (k == 1) / (n * (n + 1)),
    scale=lambda P, N, k: torch.ones_like(P),
    concave=True,
)


def precision_metric(cutoff: int) -> Metric:
    """precision@cutoff: the share of relevant items among the first `cutoff`; fewer items than that count as misses."""
    return _precision_metric(whole("k of precision@k", cutoff, 1, MOST_ITEMS))


@functools.cache
def _precision_metric(cutoff: int) -> Metric:
    return Metric(
        f"precision@{cutoff}",
        loss=lambda k, n: ((k <= cutoff) & (k + n > cutoff)).to(n.dtype),
        step=lambda k, n: ((k <= cutoff) & (k + n == cutoff + 1)).to(n.dtype),
        scale=lambda P, N, k: torch.full_like(P, 1 / cutoff),
        best=lambda P: P.clamp(max=cutoff) / cutoff,
        concave=cutoff == 1,
    )


BUILT_IN = {metric.name: metric for metric in (AP, NDCG, AUC, RECIPROCAL_RANK)}
PRECISION = re.compile(r"precision@([0-9]{1,100})")
# One's own: functions that return a Metric of that name.
METRICS = Registry("metric", about={}, taken=lambda name: name in BUILT_IN or PRECISION.fullmatch(name) is not None)
register = METRICS.register


def get_metric(metric: str | Metric) -> Metric:
    """The metric of that name: "ap", "ndcg", "auc", "rr", or "precision@10" with any cutoff. A Metric is itself."""
    if isinstance(metric, Metric):
        return metric
    if known := isinstance(metric, str) and _find(metric):
        return known
    names = ", ".join(repr(name) for name in (*BUILT_IN, *METRICS))
    raise ValueError(f"unknown metric {metric!r}: use one of {names}, 'precision@K' with a number K, or a Metric")


def _find(name: str) -> Metric | None:
    if match := PRECISION.fullmatch(name):
        return precision_metric(int(match[1]))
    if name in BUILT_IN or name not in METRICS:
        return BUILT_IN.get(name)
    return _made_by(METRICS[name].make, name)


@functools.cache
def _made_by(make: Callable[[], Metric], name: str) -> Metric:
    """Once: a metric is known again as the same object."""
    made = make()
    if not isinstance(made, Metric) or made.name != name:
        raise ValueError(f"the function that is registered as metric {name!r} must return a Metric of this name")
    return made


def loss_table(metric: str | Metric, n_relevant: int, n_irrelevant: int) -> Tensor:
    """(P, N + 1) float64: l_k(n), what the k-th relevant item loses with n irrelevant items above it.

    >>> loss_table("ap", 2, 2)  # AP = 1 - the sum of one entry a row
    tensor([[0.0000, 0.2500, 0.3333],
            [0.0000, 0.1667, 0.2500]], dtype=torch.float64)
    """
    metric = get_metric(metric)
    whole("n_relevant", n_relevant, 1, MOST_ITEMS)
    whole("n_irrelevant", n_irrelevant, 1, MOST_VALUES // n_relevant)
    k = torch.arange(1, n_relevant + 1, dtype=torch.float64)
    n = torch.arange(n_irrelevant + 1, dtype=torch.float64)
    P, N = torch.full((1, 1), n_relevant).double(), torch.full((1, 1), n_irrelevant).double()
    return metric.loss(k[:, None], n) * metric.scale(P, N, k)


def evaluate(metric: str | Metric, scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """(Q, G), (Q, G) bool -> (Q,): any metric of the ranking by scores; nan for a query with nothing relevant."""
    metric = get_metric(metric)
    sides = split(*checked(scores, relevance, valid))
    return metric.value(sides, predicted(sides))


def average_precision(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """(Q, G), (Q, G) bool -> (Q,): precision at each relevant item, averaged; nan where nothing is relevant.

    >>> average_precision(torch.tensor([[0.9, 0.8, 0.1]]), torch.tensor([[True, False, True]]))  # (1/1 + 2/3) / 2
    tensor([0.8333])
    """
    return evaluate(AP, scores, relevance, valid)


def ndcg(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """(Q, G), (Q, G) bool -> (Q,): discounted cumulative gain, 1 / log2(1 + rank) an item, as a share of the best one."""
    return evaluate(NDCG, scores, relevance, valid)


def auc(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """(Q, G), (Q, G) bool -> (Q,): area under the ROC curve, the share of pairs in order; nan where a side is empty."""
    return evaluate(AUC, scores, relevance, valid)


def reciprocal_rank(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """(Q, G), (Q, G) bool -> (Q,): 1 / rank of the first relevant item; nan where nothing is relevant."""
    return evaluate(RECIPROCAL_RANK, scores, relevance, valid)


def precision_at(cutoff: int) -> Callable[..., Tensor]:
    """precision_at(10)(scores, relevance, valid=None) -> (Q,): relevant items among the first 10, divided by 10."""
    return functools.partial(evaluate, precision_metric(cutoff))
