"""Batch norm by the statistics of the images of all processes, on every backend and device.

torch's `SyncBatchNorm` does this on GPUs alone. Here every process tells how many values it has, their mean and their
variance, and one gathering, which gradients go back through, makes the statistics of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rankshot.gathering import gathered, is_shared


class _GatheredNorm(_BatchNorm):
    """In training and with other processes; else as torch has it."""

    group: Any = None

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or not is_shared(self.group):
            return super().forward(values)
        self._check_input_dim(values)  # type: ignore[no-untyped-call]
        computed = values if values.dtype == torch.float64 else values.float()
        dimensions = [0, *range(2, values.dim())]
        count = values.numel() // values.shape[1]
        variance, mean = torch.var_mean(computed, dimensions, correction=0)
        told = torch.cat([mean.new_tensor([count]), mean, variance])[None]
        parts = gathered(told, [1] * distributed.get_world_size(self.group), self.group)
        counts, means, variances = parts[:, :1], *parts[:, 1:].chunk(2, dim=1)
        shares = (counts / counts.sum()).detach()
        mean = (shares * means).sum(0)
        variance = (shares * (variances + (means - mean).square())).sum(0)
        self._follow(mean.detach(), variance.detach(), counts.detach().sum())
        shape = [1, -1, *[1] * (values.dim() - 2)]
        normalised = (computed - mean.view(shape)) * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            normalised = torch.addcmul(self.bias.view(shape), normalised, self.weight.view(shape))
        result: Tensor = normalised.to(values.dtype)
        return result

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """The running averages, as torch updates them."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        factor = 1 / self.num_batches_tracked.to(mean.dtype) if self.momentum is None else self.momentum
        unbiased = variance * (count / (count - 1).clamp(min=1))
        for average, now in ((self.running_mean, mean), (self.running_var, unbiased)):
            average += factor * (now.to(average.dtype) - average)


class GatheredBatchNorm1d(_GatheredNorm, nn.BatchNorm1d):
    """See `gather_batch_norm`."""


class GatheredBatchNorm2d(_GatheredNorm, nn.BatchNorm2d):
    """See `gather_batch_norm`."""


class GatheredBatchNorm3d(_GatheredNorm, nn.BatchNorm3d):
    """See `gather_batch_norm`."""


KINDS: dict[type, type] = {
    nn.BatchNorm1d: GatheredBatchNorm1d,
    nn.BatchNorm2d: GatheredBatchNorm2d,
    nn.BatchNorm3d: GatheredBatchNorm3d,
}


@contextmanager
def gathering_batch_norm(network: nn.Module) -> Iterator[None]:
    """`gather_batch_norm` while this lasts; then the network is as it was. Batch norm of another kind is refused."""
    for name, layer in network.named_modules():
        if isinstance(layer, _BatchNorm) and layer.training and type(layer) not in (*KINDS, *KINDS.values()):
            what = f"{type(layer).__name__} ({name})"
            raise ValueError(f"batch norm of the kind {what} cannot see the images of all processes: freeze it")
    before = [(layer, type(layer)) for layer in network.modules() if type(layer) in KINDS]
    for layer, kind in before:
        layer.__class__ = KINDS[kind]
    try:
        yield
    finally:
        for layer, kind in before:
            layer.__class__ = kind


def gather_batch_norm(network: nn.Module, group: Any = None) -> nn.Module:
    """Let the batch norm of a network see the images of all processes in training, on every backend and device.

    The network is changed in place; its weights and their names stay. In a single process nothing changes in what it
    computes.

    Args:
        network: with `BatchNorm1d`, `2d` or `3d` layers.
        group: of processes. None: all of them.

    Returns:
        The same network.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from rankshot.models import gather_batch_norm
        >>> network = gather_batch_norm(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(1, affine=False)))
        >>> type(network[1]).__name__
        'GatheredBatchNorm1d'
        >>> network(torch.tensor([[1.0], [3.0]]))  # mean 2, deviation 1
        tensor([[-1.0000],
                [ 1.0000]])
    """
    for layer in network.modules():
        if type(layer) in KINDS:
            layer.__class__ = KINDS[type(layer)]
        if isinstance(layer, _GatheredNorm):
            layer.group = group
    return network
