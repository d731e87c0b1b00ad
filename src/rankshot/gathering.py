"""Tensors of several processes as one, with the gradient that one process would have."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


def is_shared(group: Any = None) -> bool:
    """Whether there are other processes to gather from."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size(group) > 1


def gathered(values: Tensor, sizes: list[int], group: Any = None) -> Tensor:
    """(n, …) of every process, one after another; `sizes` is n of each. The gradient is the sum over all processes."""
    result: Tensor = _Gather.apply(values, sizes, group)  # type: ignore[no-untyped-call]
    return result


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, sizes: list[int], group: Any) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        padded = values.new_zeros(max(sizes), *values.shape[1:])  # parts of one size, as all backends gather
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded, group=group)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """What all processes want of this one's part."""
        gradient = gradient.contiguous().clone()
        distributed.all_reduce(gradient, group=ctx.group)
        rank = distributed.get_rank(ctx.group)
        start = sum(ctx.sizes[:rank])
        return gradient[start : start + ctx.sizes[rank]], None, None
