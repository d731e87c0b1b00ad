"""The objective of small batches on a GPU: one program a query, from its scores to their weights, in one launch.

The same mathematics as `solvers` and `objectives`, in the same order of ties, with counting in place of sorting: a program
compares all pairs of its few hundred items, instead of dozens of small operations that each go over all queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rankshot.kernels import kernels_work, on

from .inference import decouples
from .metrics import Metric
from .objectives import Objective, Settings
from .sorted_pool import counting

MOST_ITEMS = 1024
MOST_KEPT = 16
_kept: dict[tuple[object, ...], tuple[Tensor, ...]] = {}


def fits(scores: Tensor, chosen: Settings) -> bool:
    """Whether `objective_rows` can do it."""
    small = scores.shape[1] <= MOST_ITEMS and scores.dtype == torch.float32
    return small and decouples(chosen.metric, chosen.sign) and kernels_work(scores.device)


def objective_rows(
    scores: Tensor, relevant: Tensor, irrelevant: Tensor, chosen: Settings, shifts: Sequence[float] = (0.0,)
) -> Objective:
    """(Q, G) float32 and two masks -> (Q,), (Q, G): the mean over `shifts`, by which the relevant scores are raised."""
    from . import fused_rows_kernel

    queries, items = scores.shape
    n_relevant, n_irrelevant = (side.sum(-1, keepdim=True).clamp_(min=1).float() for side in (relevant, irrelevant))
    scale = chosen.metric.scale(n_relevant, n_irrelevant, counting(items, scores)).expand(queries, 1).contiguous()
    steps, losses, raised = _constants(chosen.metric, items, tuple(shifts), scores.device)
    loss, weights = scores.new_empty(queries), torch.empty_like(scores)
    with on(scores):
        fused_rows_kernel.launch(
            scores.contiguous(), relevant, irrelevant, scale, steps, losses, loss, weights, chosen, raised
        )
    return Objective(loss, weights)


def _constants(metric: Metric, items: int, shifts: tuple[float, ...], device: torch.device) -> tuple[Tensor, ...]:
    """What does not depend on the batch, kept for the next one of this size.

    A CUDA graph makes its own, for it may be replayed when what is kept here has gone.
    """
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return _made(metric, items, shifts, device)
    key = (metric, items, shifts, device)
    if key not in _kept:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[key] = _made(metric, items, shifts, device)
    return _kept[key]


def _made(metric: Metric, items: int, shifts: tuple[float, ...], device: torch.device) -> tuple[Tensor, ...]:
    """Sums of step(1 … m, n) at [m - 1, n - 1], loss(k, n) at [k - 1, n], and the shifts."""
    count = counting(items, torch.empty((), device=device))
    steps = metric.step(count[:, None], count).cumsum(0).contiguous()
    losses = metric.loss(count[:, None], torch.cat([count.new_zeros(1), count])).contiguous()
    return steps, losses, torch.cat([torch.full((1,), shift, device=device) for shift in shifts])
