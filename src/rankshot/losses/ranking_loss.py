"""mAP-SSVM and mAP-DLM, and the same for every other metric of `ranking`."""

from __future__ import annotations

import sys
import warnings
from statistics import NormalDist
from typing import Any, Self

import torch
from torch import Tensor

from rankshot.limits import real, whole
from rankshot.ranking.checks import LARGEST_SETTING, check_alpha, may_look
from rankshot.ranking.metrics import Metric
from rankshot.ranking.objectives import check_framework, of_each_sign, settings
from rankshot.ranking.pool import side_counts
from rankshot.ranking.sorted_rows import Ranking, fits
from rankshot.vectors import unit_vectors

from .batch_loss import BatchLoss
from .checks import References, all_finite, complain_of_not_finite
from .chunked import Plan, rank
from .registry import PRESETS, RECIPE, register
from .replaying import MOST_IMAGES, Recording, Recordings, Replayed, refuse_second_derivative

# The best settings that are known of each framework, chosen on the validation classes of five data sets
# (docs/experiments.md), and those of the paper, whose negative update has alpha 1.
BEST: dict[str, dict[str, float]] = {
    "dlm": {"epsilon": 0.003, "alpha": 1.0, "smoothing": 0.02, "coarse_weight": 0.1},
    "ssvm": {"epsilon": 1.0, "alpha": 2.0, "smoothing": 0.0, "coarse_weight": 0.0},
}
PAPER: dict[str, float] = {"epsilon": 1.0, "alpha": 10.0, "smoothing": 0.0, "coarse_weight": 0.0}
PAPER_PRESETS = {
    name: {**PAPER, "learning_rate": 0.001, "schedule": "constant", **settings} for name, settings in PRESETS.items()
}

MOST_SMOOTHING = 100.0  # of cosines, which are from -1 to 1
MOST_SAMPLES = 1000
MOST_MEMORY = 2**50  # bytes


@register(
    "map-dlm",
    fixed={"framework": "dlm", "reduction": "mean"},
    usual=BEST["dlm"],
    run_settings=RECIPE,
    fine_tuning={"coarse_weight": 1.0},  # as heavy as the fine one (docs/experiments.md)
    presets=PAPER_PRESETS,
    summary="average precision of every ranking, by direct loss minimisation (the paper's)",
)
@register(
    "map-ssvm",
    fixed={"framework": "ssvm", "sign": 1, "reduction": "mean"},
    usual=BEST["ssvm"],
    run_settings=RECIPE,
    presets=PAPER_PRESETS,
    summary="average precision of every ranking, by a structural SVM (the paper's)",
)
class RankingLoss(BatchLoss):
    """Every embedding of a batch ranks all others by cosine similarity; the loss optimises all these rankings at once.

    What it optimises: `metric` ("ap", "ndcg", "auc", "rr", "precision@10", or a `ranking.Metric`), directly, by exact
    loss-augmented inference:

    - framework "dlm": direct loss minimisation, the gradient of the metric itself as epsilon goes to 0. sign +1 moves
      away from the worst ranking that still scores well, sign -1 towards the best one; sign 0 is the mean of both.
    - framework "ssvm": a structural SVM, an upper bound of the metric's loss.

    `RankingLoss()` has the best known settings. `RankingLoss.paper("dlm")` and `RankingLoss.paper("ssvm")` have those of
    the paper, alpha 10 and epsilon 1. Settings that are not given are the best known: `RankingLoss(alpha=10, epsilon=1)`
    has a coarse objective and smoothing, and the paper's has neither. The objective of `RankingLoss()` has two scales:

    - The fine one follows the gradient of the metric itself (alpha 1 and a small `epsilon`). It comes from the pairs of
      items that are about to change places. `smoothing` includes more pairs: the metric is averaged over shifts of a
      query's relevant scores, by `smoothing_samples` quantiles of a normal distribution of this standard deviation.
    - The coarse one is the paper's objective (epsilon 1, alpha `coarse_alpha`), with weight `coarse_weight`. Every pair of
      items takes part in it, and is drawn towards a margin. It matters where the fine one has little gradient: early in
      training, and once the batch is ranked right.

    What batches it needs: several classes with two or more images each, in any order and of any size. A query with
    nothing relevant or nothing irrelevant is left out of the mean (and is 0 with reduction "none").

    | input      | shape  | what                                                            |
    |------------|--------|-----------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised                  |
    | labels     | (B,)   | integers                                                        |
    | ref_emb    | (G, D) | what to rank; without it the batch ranks itself, leave-one-out  |
    | ref_labels | (G,)   | integers                                                        |
    | ids        | (B,)   | integers: which image each one is                               |
    | ref_ids    | (G,)   | integers: a query leaves out the references of its own id       |

    The arguments are those of pytorch-metric-learning. A miner's `indices_tuple` is refused: a ranking is of all items.

    The result is a scalar, or (B,) with reduction "none"; float32, or float64 for float64 embeddings. The value is the
    objective whose gradient is used, not the metric: with alpha other than 1 it may be negative. Watch
    `ranking.average_precision` to see how training goes.

    Memory: queries are ranked in chunks that take about `memory_budget` bytes (None: 128 MiB, and 1 GiB on an
    accelerator), and "mean" and "sum" compute the gradient in the forward pass, so nothing of size B x B is kept. "none"
    ranks a second time in the backward pass.

    On an accelerator one small read a call makes the host wait: how many relevant items there are, whether everything is
    finite. There, batches of up to 512 images are replayed as a CUDA graph when their size comes again (see `replaying`).
    While a CUDA graph of one's own is recorded nothing is read and nothing is checked; a NaN then shows in the loss.

    `torch.compile` leaves it as it is. It has no second derivative, and `torch.func` cannot transform it.

    Args:
        metric: what rankings are judged by: ap, ndcg, auc, rr, or precision@K for any K.
        framework: dlm or ssvm.
        epsilon: weight of the metric within loss-augmented inference. None: the best known, 0.003 for dlm, 1 for ssvm.
        alpha: weight of the loss-augmented ranking. None: the best known, 1 for dlm, 2 for ssvm.
        sign: direct loss minimisation: 1 moves away from a bad ranking that scores well, -1 towards a good one. 0: both,
            the mean of the two objectives; alpha is then that of sign 1, and sign -1 has the paper's, 1.
        reduction: mean, sum, or none.
        smoothing: standard deviation of a shift of the relevant similarities that the metric is averaged over. 0: none.
            None: the best known, 0.02 for dlm, 0 for ssvm.
        smoothing_samples: how many shifts, where smoothing is not 0.
        coarse_weight: weight of the coarse objective (epsilon 1), in which every pair of items takes part; its sign is
            always 1. 0: none. None: the best known, 0.1 for dlm, 0 for ssvm and for sign -1, and so 0.05 for sign 0.
        coarse_alpha: alpha of the coarse objective.
        memory_budget: bytes that a chunk of queries takes.

    Raises:
        ValueError: if there is no such metric, framework or reduction, or a setting is out of range; when called, if
            embeddings are not finite.

    Examples:
        Three images. The two of class 0 are farther from each other than from the one of class 1:

        >>> import torch
        >>> from rankshot import losses, ranking
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], requires_grad=True)
        >>> labels = torch.tensor([0, 1, 0])
        >>> hinge = losses.RankingLoss.paper("ssvm", alpha=1.0)(embeddings, labels)
        >>> round(hinge.item(), 4)  # the mean of the structured hinges, 2.1 and 1.7
        1.9

        Some steps of gradient descent bring the average precision of both rankings from 0.5 to 1:

        >>> def mean_ap():
        ...     vectors = torch.nn.functional.normalize(embeddings.detach())
        ...     return ranking.average_precision(vectors @ vectors.T, *ranking.relevance_of(labels)).nanmean().item()
        >>> mean_ap()
        0.5
        >>> loss = losses.RankingLoss()
        >>> for step in range(30):
        ...     (gradient,) = torch.autograd.grad(loss(embeddings, labels), embeddings)
        ...     embeddings = (embeddings - 0.5 * gradient).detach().requires_grad_()
        >>> mean_ap()
        1.0
    """

    def __init__(
        self,
        metric: str | Metric = "ap",
        framework: str = "dlm",
        epsilon: float | None = None,
        alpha: float | None = None,
        sign: int = +1,
        reduction: str = "mean",
        *,
        smoothing: float | None = None,
        smoothing_samples: int = 4,
        coarse_weight: float | None = None,
        coarse_alpha: float = 3.0,
        memory_budget: int | None = None,
    ) -> None:
        super().__init__(reduction)
        best = BEST[check_framework(framework)]
        epsilon, alpha, smoothing = (
            best[name] if value is None else value
            for name, value in (("epsilon", epsilon), ("alpha", alpha), ("smoothing", smoothing))
        )
        updates = of_each_sign(framework, metric, epsilon, alpha, sign)
        if coarse_weight is None:  # the coarse objective moves away from a bad ranking, and not towards one
            coarse_weight = best["coarse_weight"] * sum(update.sign > 0 for update in updates) / len(updates)
        self.settings = updates[0]._replace(sign=int(sign))  # as they were given
        self.smoothing = real("smoothing", smoothing, 0, MOST_SMOOTHING)
        self.smoothing_samples = whole("smoothing_samples", smoothing_samples, 2, MOST_SAMPLES)
        self.coarse_weight, self.coarse_alpha = (
            real("coarse_weight", coarse_weight, 0, LARGEST_SETTING),
            check_alpha(coarse_alpha, "coarse_alpha"),
        )
        shifts = normal_quantiles(self.smoothing, self.smoothing_samples) if self.smoothing else [0.0]
        share = 1 / len(shifts) / len(updates)
        self.rankings = [Ranking(update, shift, share) for update in updates for shift in shifts]
        if self.coarse_weight:
            self.rankings.append(Ranking(settings(framework, metric, 1.0, coarse_alpha), 0.0, self.coarse_weight))
        self.memory_budget = None if memory_budget is None else whole("memory_budget", memory_budget, 1, MOST_MEMORY)
        self._warned = False
        self._recordings = Recordings()

    @classmethod
    def paper(cls, framework: str = "dlm", *, sign: int = +1, **more: Any) -> Self:
        """The loss with the paper's settings: epsilon 1 and alpha 10, and alpha 1 for the negative update (sign -1).

        Args:
            framework: "dlm" or "ssvm".
            sign: 1, -1, or 0 for the mean of both.
            **more: other settings of the constructor.

        Returns:
            The loss.

        Examples:
            >>> from rankshot.losses import RankingLoss
            >>> RankingLoss.paper("ssvm")
            RankingLoss(metric='ap', framework='ssvm', epsilon=1, alpha=10, sign=+1, reduction='mean')
        """
        return cls(framework=framework, sign=sign, **{**PAPER, **({"alpha": 1.0} if sign == -1 else {}), **more})

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        compiles = torch.compiler.is_compiling()
        if references is None and not compiles and (recording := self._recording(embeddings, labels)) is not None:
            return self._replayed(recording, embeddings, labels)
        rank = _uncompiled() if compiles else RankingLoss._rank
        loss: Tensor = rank(self, embeddings, labels, references, self.reduction)[0]
        return loss

    def sum_and_count(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        loss, rankable = self._rank(embeddings, labels, references, "sum")
        return loss, rankable.sum()

    def _recording(self, embeddings: Tensor, labels: Tensor) -> Recording | None:
        """Where the whole of it is a few kernels."""
        # Not of float16: its gradient would vanish before a scaled loss could keep it.
        if not embeddings.is_cuda or self.reduction != "mean" or embeddings.dtype not in (torch.float32, torch.bfloat16):
            return None
        if not fits(embeddings.new_empty(0, dtype=torch.float32), self.rankings, len(embeddings)):
            return None
        return self._recordings.get(self._recorded, embeddings, labels)

    def _recorded(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """For `replaying`: the loss, and what `_look` would see."""
        loss, rankable = self._rank(embeddings, labels, None, "mean")
        return loss, torch.stack([rankable.any(), all_finite(embeddings)])

    def _replayed(self, recording: Recording, embeddings: Tensor, labels: Tensor) -> Tensor:
        value, gradient, (some_rankable, is_finite) = recording.replay(embeddings, labels)
        self._check(len(labels), some_rankable, is_finite, embeddings, None)
        loss: Tensor = Replayed.apply(embeddings, value, gradient)  # type: ignore[no-untyped-call]
        return loss

    def _rank(
        self, embeddings: Tensor, labels: Tensor, references: References | None, reduction: str
    ) -> tuple[Tensor, Tensor]:
        """The loss, and (B,) which queries can be ranked."""
        queries = unit_vectors(embeddings)
        items = queries if references is None else unit_vectors(references.embeddings)
        dtype = torch.promote_types(queries.dtype, items.dtype)
        queries, items = queries.to(dtype), items.to(dtype)
        if references is None:
            item_labels, every = labels, torch.arange(len(items), device=queries.device)
            ids: tuple[Tensor, Tensor] | None = (every, every)
            counts = side_counts(labels)
        else:
            _, item_labels, item_ids, query_ids = references
            ids = None if query_ids is None or item_ids is None else (query_ids, item_ids)
            counts = side_counts(labels, item_labels, query_ids, item_ids)
        rankable = (counts.relevant > 0) & (counts.irrelevant > 0)
        others = None if references is None else references.embeddings
        bound = self._look(counts.relevant, rankable, embeddings, others) if may_look(labels) else len(items)
        if len(items) <= MOST_IMAGES and fits(queries, self.rankings, len(items)):
            bound = len(items)  # as where it is replayed: the same sums in the same order
        plan = Plan(
            labels=labels,
            item_labels=item_labels,
            ids=ids,
            counts=counts,
            bound=bound,
            rankings=tuple(self.rankings),
            memory_budget=self.memory_budget or (128 * 2**20 if queries.device.type == "cpu" else 2**30),
        )
        if reduction == "none":
            return _RankedEach.apply(queries, items, plan), rankable  # type: ignore[no-untyped-call]
        scale = rankable.to(dtype)
        if reduction == "mean":
            scale /= scale.sum().clamp(min=1)
        return _RankedTogether.apply(queries, items, plan, scale), rankable  # type: ignore[no-untyped-call]

    def _look(self, counts: Tensor, rankable: Tensor, *embeddings: Tensor | None) -> int:
        """The most relevant items of any query, and a complaint about what is wrong: all in one wait for the device."""
        finite = torch.stack([all_finite(tensor) for tensor in embeddings if tensor is not None])
        most, some_rankable, is_finite = torch.stack([counts.max(), rankable.any(), finite.all()]).tolist()
        self._check(len(counts), some_rankable, is_finite, *embeddings)
        return int(most)

    def _check(self, images: int, some_rankable: bool, is_finite: bool, *embeddings: Tensor | None) -> None:
        if not is_finite:
            complain_of_not_finite(*embeddings)
        if not some_rankable and not self._warned:
            self._warned = True
            warnings.warn(
                f"no query of this batch of {images} has both a relevant and an irrelevant item to rank: the loss is "
                "0. There must be other images of a query's class, and images of another class.",
                stacklevel=_frames_to_the_caller(),
            )

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        framework, metric, epsilon, alpha, sign = self.settings
        return (
            f"metric={metric.name!r}, framework={framework!r}, epsilon={epsilon:g}, alpha={alpha:g}, "
            f"sign={f'{sign:+d}' if sign else 0}, reduction={self.reduction!r}"
            + (f", smoothing={self.smoothing:g}, smoothing_samples={self.smoothing_samples}" if self.smoothing else "")
            + (f", coarse_weight={self.coarse_weight:g}, coarse_alpha={self.coarse_alpha:g}" if self.coarse_weight else "")
        )


class _RankedTogether(torch.autograd.Function):
    """One scalar; the gradient is ready when the forward pass ends, and nothing else is kept."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, items: Tensor, plan: Plan, scale: Tensor) -> Tensor:
        needs_gradients = any(ctx.needs_input_grad[:2])
        losses, *gradients = rank(queries, items, plan, scale if needs_gradients else None)
        if needs_gradients:
            ctx.save_for_backward(*gradients)
        return torch.dot(losses, scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        refuse_second_derivative()
        by_queries, by_items = ctx.saved_tensors
        return grad * by_queries, grad * by_items, None, None


class _RankedEach(torch.autograd.Function):
    """One loss a query; what each one weighs is known only in the backward pass, which ranks again."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, items: Tensor, plan: Plan) -> Tensor:
        ctx.save_for_backward(queries, items)
        ctx.plan = plan
        return rank(queries, items, plan).losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        refuse_second_derivative()
        queries, items = ctx.saved_tensors
        ranked = rank(queries, items, ctx.plan, scale=grad)
        return ranked.by_queries, ranked.by_items, None


def normal_quantiles(deviation: float, number: int) -> list[float]:
    """Equally likely values of a normal distribution: the middles of `number` slices of equal probability.

    >>> normal_quantiles(1.0, 2)
    [-0.674..., 0.674...]
    """
    return [NormalDist(0, deviation).inv_cdf((index + 0.5) / number) for index in range(number)]


def _frames_to_the_caller() -> int:
    """As warnings count them: how far up the first frame is that is neither ours nor torch's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("rankshot", "torch"):
        level, frame = level + 1, frame.f_back
    return level


_UNCOMPILED: list[Any] = []


def _uncompiled() -> Any:
    """Shapes depend on the data, and it is fast as it is. Only who compiles waits for torch's compiler to be imported."""
    if not _UNCOMPILED:
        _UNCOMPILED.append(torch.compiler.disable(RankingLoss._rank))  # type: ignore[no-untyped-call]
    return _UNCOMPILED[0]
