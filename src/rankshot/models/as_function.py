"""Any network as a function of its weights: what systems compute with that learn weights anew for every task.

A network may have an `as_function` of its own that is faster, as Conv4 has. For any other its batch norm is replaced by one
that is written out: it normalises a task by itself, tells its statistics, and has second derivatives under `vmap`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

Statistics = Sequence[tuple[Tensor, Tensor]]  # mean and variance of every layer of batch norm


def prepare(network: nn.Module) -> None:
    """Make a network ready, in place: there is nothing to average over tasks, so its batch norm has no running averages."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                child.track_running_stats = False
                child.running_mean = child.running_var = child.num_batches_tracked = None
                if not hasattr(network, "as_function"):
                    setattr(module, name, TaskNorm(child))


def as_function(
    network: nn.Module,
    weights: Mapping[str, Tensor],
    images: Tensor,
    known: Statistics | None = None,
    *,
    derived_twice: bool = True,
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """(B, C, H, W) -> (B, D) by these weights, and each norm's mean and variance over these images.

    known           statistics to normalise by, instead of those of these images
    derived_twice   gradients have gradients too; else it may take fewer steps
    """
    own: Any = getattr(network, "as_function", None)
    if own is not None:
        embeddings, statistics = own(weights, images, known, derived_twice=derived_twice)
        return embeddings, statistics
    call = _Call(known)
    _CALLS.append(call)
    try:
        embeddings = functional_call(network, dict(weights), (images,))
    finally:
        _CALLS.pop()
    return embeddings, call.statistics


class _Call:
    """One pass through a network: the statistics to use, and those that were found."""

    def __init__(self, known: Statistics | None) -> None:
        self.known: Iterator[tuple[Tensor, Tensor]] | None = None if known is None else iter(known)
        self.statistics: list[tuple[Tensor, Tensor]] = []


_CALLS: list[_Call] = []


class TaskNorm(nn.Module):
    """Batch norm by the statistics of the images at hand, or by those that are known, written out."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps

    def forward(self, values: Tensor) -> Tensor:
        call = _CALLS[-1] if _CALLS else _Call(None)
        known = None if call.known is None else next(call.known)
        normal, statistics = by_task(values, self.weight, self.bias, self.eps, known)
        call.statistics.append(statistics)
        return normal


def by_task(
    values: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """(B, C, H, W), normalised channel by channel by the mean and variance of these values, or by those that are known;
    and the mean and variance of these values."""
    variance, mean = torch.var_mean(values, (0, 2, 3), correction=0)
    by_mean, by_variance = (mean, variance) if known is None else known
    factor = (by_variance + eps).rsqrt()
    if scale is not None:
        factor = factor * scale
    start = -by_mean * factor if shift is None else shift - by_mean * factor
    return values * factor[:, None, None] + start[:, None, None], (mean, variance)
