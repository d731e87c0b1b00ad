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
    """A ranking metric, described by what each mistake in a ranking costs.

    Let k = 1, 2, … count the relevant items of a ranking from the top, and let n be the number of irrelevant items above
    the k-th of them. Every metric here is `best(P) - scale * sum_k loss(k, n)`, for P relevant and N irrelevant items.
    The callables take float tensors of whole numbers and broadcast.

    `loss` and `step` are also called past the items that there are (k = 0, k > P, n > N). What they return there does not
    matter, but they must return.

    Args:
        name: of the metric, by which `get_metric` finds it if it is registered.
        loss: loss(k, n), the cost of n irrelevant items above the k-th relevant one, unscaled; 0 for n = 0.
        step: step(k, n) = loss(k, n) - loss(k, n - 1), written so that no digits cancel.
        scale: scale(P, N, k) with shapes (Q, 1), (Q, 1), (R,) -> (Q, 1), the factor in front. P and N are at least 1; k
            holds 1..R with R >= P, for sums over the ideal ranking.
        best: best(P), the value of the ground truth ranking. Default: 1.
        concave: whether `step` never rises with n. Inference is then fast. If this is True and wrong, inference is not
            exact.
        needs_irrelevant: whether the metric is undefined (nan) for a query whose items are all relevant.

    Examples:
        Average precision loses n / (k + n) at the k-th relevant item, divided by the number of relevant items:

        >>> import torch
        >>> from rankshot import ranking
        >>> my_ap = ranking.Metric(
        ...     "my-ap",
        ...     loss=lambda k, n: n / (k + n),
        ...     step=lambda k, n: k / ((k + n - 1) * (k + n)),
        ...     scale=lambda P, N, k: 1 / P,
        ...     concave=True,
        ... )
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.evaluate(my_ap, scores, relevance)  # (1/2 + 2/3) / 2
        tensor([0.5833])
    """

    name: str
    loss: Elementwise
    step: Elementwise
    scale: Callable[[Tensor, Tensor, Tensor], Tensor]
    best: Callable[[Tensor], Tensor] = _one
    concave: bool = False
    needs_irrelevant: bool = False

    def value(self, sides: SortedPool, above: Tensor) -> Tensor:
        """The metric of each ranking, (Q,); nan for a query where it is not defined. `above` (Q, R) holds n for each k."""
        defined = sides.rankable if self.needs_irrelevant else sides.n_relevant > 0
        worth = self.best(sides.n_relevant.to(sides.dtype)) - self.regret(sides, above)
        return worth.masked_fill(~defined, torch.nan).squeeze(-1)

    def regret(self, sides: SortedPool, above: Tensor) -> Tensor:
        """The task loss L of each ranking, (Q, 1): how far its metric is below that of the ground truth."""
        k = counting(sides.relevant.shape[1], sides.relevant)
        losses = self.loss(k, above.to(sides.dtype))
        return losses.where(k <= sides.n_relevant, 0.0).sum(-1, keepdim=True) * self.scales(sides)

    def __reduce__(self) -> tuple[Callable[..., Metric], tuple[object, ...]]:
        """Metrics that have a name are copied, and sent to other processes, by it: functions cannot be."""
        if _find(self.name) is self:
            return get_metric, (self.name,)
        return Metric, tuple(getattr(self, field.name) for field in fields(self))

    def scales(self, sides: SortedPool) -> Tensor:
        """The factor `scale` of each query, (Q, 1); finite also without relevant or without irrelevant items."""
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
    """The metric of a given name.

    Args:
        metric: "ap", "ndcg", "auc", "rr", "precision@K" with any K, or the name of a registered metric. A `Metric` is
            returned as it is.

    Returns:
        The `Metric`.

    Raises:
        ValueError: if there is no metric of that name.

    Examples:
        >>> from rankshot import ranking
        >>> ranking.get_metric("precision@10").name
        'precision@10'
        >>> ranking.get_metric("ap").concave
        True
    """
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
    """The loss table l_k(n) of the papers: the metric lost at the k-th relevant item with n irrelevant items above it.

    A ranking loses one entry of each row. Its metric is the best value minus the sum of these.

    Args:
        metric: a name, as in `get_metric`, or a `Metric`.
        n_relevant: number of relevant items P, at least 1.
        n_irrelevant: number of irrelevant items N, at least 1.

    Returns:
        (P, N + 1) float64: row k - 1, column n holds l_k(n).

    Raises:
        ValueError: if a number is out of range, or there is no metric of that name.

    Examples:
        >>> from rankshot import ranking
        >>> table = ranking.loss_table("ap", 2, 2)
        >>> table
        tensor([[0.0000, 0.2500, 0.3333],
                [0.0000, 0.1667, 0.2500]], dtype=torch.float64)
        >>> round(float(1 - table[0, 1] - table[1, 1]), 4)  # AP of the ranking: irrelevant, relevant, relevant, irrelevant
        0.5833
    """
    metric = get_metric(metric)
    whole("n_relevant", n_relevant, 1, MOST_ITEMS)
    whole("n_irrelevant", n_irrelevant, 1, MOST_VALUES // n_relevant)
    k = torch.arange(1, n_relevant + 1, dtype=torch.float64)
    n = torch.arange(n_irrelevant + 1, dtype=torch.float64)
    P, N = torch.full((1, 1), n_relevant).double(), torch.full((1, 1), n_irrelevant).double()
    return metric.loss(k[:, None], n) * metric.scale(P, N, k)


def evaluate(metric: str | Metric, scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """Any metric of the ranking by scores, one value a query.

    Items with higher scores rank higher. A relevant and an irrelevant item with equal scores count as a mistake.

    Args:
        metric: a name, as in `get_metric`, or a `Metric`.
        scores: (Q, G) float, one row a query.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q,) float; nan for a query with nothing relevant.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, scores are not finite, or there is no metric of that name.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.evaluate("ap", scores, relevance)  # (1/2 + 2/3) / 2
        tensor([0.5833])
        >>> ranking.evaluate("precision@3", scores, relevance)  # 2 of the first 3
        tensor([0.6667])
        >>> valid = torch.tensor([[False, True, True, True]])  # without the first item
        >>> ranking.evaluate("ap", scores, relevance, valid)
        tensor([1.])
    """
    metric = get_metric(metric)
    sides = split(*checked(scores, relevance, valid))
    return metric.value(sides, predicted(sides))


def average_precision(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """Average precision (AP): the precision at each relevant item, averaged over the relevant items.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q,) float from 0 to 1; nan for a query with nothing relevant.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        Four items; the relevant ones rank second and third:

        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.average_precision(scores, relevance)  # (1/2 + 2/3) / 2
        tensor([0.5833])

        The mean AP of a batch that ranks itself by cosine similarity:

        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
        >>> relevance, valid = ranking.relevance_of(torch.tensor([0, 1, 0, 1]))
        >>> ap = ranking.average_precision(embeddings @ embeddings.T, relevance, valid)
        >>> ap
        tensor([0.5000, 0.3333, 0.3333, 0.5000])
        >>> ap.mean()
        tensor(0.4167)
    """
    return evaluate(AP, scores, relevance, valid)


def ndcg(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """Normalised discounted cumulative gain (NDCG), with gain 1 for a relevant item and discount 1 / log2(1 + rank).

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q,) float from 0 to 1: the gain as a share of that of the best ranking; nan for a query with nothing relevant.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.ndcg(scores, relevance)  # (1/log2(3) + 1/log2(4)) / (1/log2(2) + 1/log2(3))
        tensor([0.6934])
    """
    return evaluate(NDCG, scores, relevance, valid)


def auc(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """Area under the ROC curve (AUC): the share of (relevant, irrelevant) pairs that are in the right order.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q,) float from 0 to 1; nan for a query with nothing relevant or nothing irrelevant.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.auc(scores, relevance)  # 2 of 4 pairs: both relevant items are above the last item only
        tensor([0.5000])
    """
    return evaluate(AUC, scores, relevance, valid)


def reciprocal_rank(scores: Tensor, relevance: Tensor, valid: Tensor | None = None) -> Tensor:
    """Reciprocal rank: 1 / rank of the first relevant item.

    Args:
        scores: (Q, G) float, one row a query; higher scores rank higher.
        relevance: (Q, G) bool, which items are relevant to the query.
        valid: (Q, G) bool, which items are ranked at all. None: all.

    Returns:
        (Q,) float from 0 to 1; nan for a query with nothing relevant.

    Raises:
        TypeError: if `scores` are not floating point, or a mask is not bool.
        ValueError: if shapes differ, or scores are not finite.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.reciprocal_rank(scores, relevance)  # the first relevant item ranks second
        tensor([0.5000])
    """
    return evaluate(RECIPROCAL_RANK, scores, relevance, valid)


def precision_at(cutoff: int) -> Callable[..., Tensor]:
    """Precision at a cutoff: the number of relevant items among the first `cutoff`, divided by `cutoff`.

    Args:
        cutoff: K of precision@K, at least 1.

    Returns:
        A function (scores, relevance, valid=None) -> (Q,), called as `average_precision` is. It divides by `cutoff` also
        where there are fewer items.

    Raises:
        ValueError: if `cutoff` is below 1.

    Examples:
        >>> import torch
        >>> from rankshot import ranking
        >>> scores = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
        >>> relevance = torch.tensor([[False, True, True, False]])
        >>> ranking.precision_at(3)(scores, relevance)  # 2 of the first 3
        tensor([0.6667])
    """
    return functools.partial(evaluate, precision_metric(cutoff))
