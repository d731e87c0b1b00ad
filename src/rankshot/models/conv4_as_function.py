"""Conv4 as a function of its weights: what systems compute with that learn weights anew for every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from rankshot.kernels import kernels_work

from .as_function import Statistics
from .double_backward import convolved, pooled


def conv4_as_function(
    weights: Mapping[str, Tensor], images: Tensor, eps: Sequence[float], known: Statistics | None, *, derived_twice: bool
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """(B, C, H, W) -> (B, D), and each layer's mean and variance over these images.

    weights         by their names in a Conv4
    eps             of each layer's batch norm
    known           statistics to normalise by, instead of those of these images
    derived_twice   gradients have gradients too; else it takes fewer steps
    """
    values, all_statistics = images, []
    layer = block if derived_twice else fused_block
    for index, layer_eps in enumerate(eps):
        filters, scale, shift = (weights[f"{index}.{name}"] for name in ("0.weight", "1.weight", "1.bias"))
        values, statistics = layer(values, filters, scale, shift, layer_eps, known[index] if known else None)
        all_statistics.append(statistics)
    return values.flatten(1), all_statistics


def block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Convolution, batch norm, maximum of 2 x 2, ReLU; and the mean and variance of the convolution's results.

    With kernels, where they work, the mean and the variance are constants: nothing can be derived by them.
    """
    if known is None and has_kernels(values, filters):
        return kernel_block(values, filters, scale, shift, eps)
    return plain_block(values, filters, scale, shift, eps, known)


def has_kernels(values: Tensor, filters: Tensor, least: int = 2) -> bool:
    """For images of at least so many pixels a side."""
    if values.numel() == 0 or min(values.shape[-2:]) < least:
        return False
    return values.dtype == filters.dtype == torch.float32 and kernels_work(values.device)


def kernel_block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, stride: int = 1, pool: int = 2
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same by kernels, for all tasks at once. They read filters fastest where the channels lie beside one another."""
    from .task_convolution import convolved
    from .task_norm import norm_pool_relu

    filters = filters.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return norm_pool_relu(convolved(values, filters, stride), scale, shift, eps, pool)


def plain_block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same by torch.

    The norm comes after the maximum, where there are a quarter as many values: a rising line does not change which one is
    the largest. Where it falls, by a negative scale, scale and filters both change their sign.
    """
    sign = torch.copysign(scale.new_ones(()), scale.detach())
    largest, mean, variance = pooled(convolved(values, filters * sign[:, None, None, None]))
    by_mean, by_variance = (mean, variance) if known is None else (known[0] * sign, known[1])
    factor = scale * sign * (by_variance + eps).rsqrt()
    start = shift - by_mean * factor
    normal = largest * factor[:, None, None] + start[:, None, None]
    return nn.functional.relu(normal), (mean * sign, variance)


def fused_block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same by kernels, or by the batch norm of torch, whose second derivatives are wrong under `vmap`."""
    if known is None and has_kernels(values, filters):
        return kernel_block(values, filters, scale, shift, eps)
    values = nn.functional.conv2d(values, filters, padding=1)
    normal, mean, sharpness = torch.native_batch_norm(values, scale, shift, None, None, True, 0.0, eps)
    if known is not None:
        normal = nn.functional.batch_norm(values, *known, scale, shift, eps=eps)
    return nn.functional.relu(nn.functional.max_pool2d(normal, 2)), (mean, sharpness.pow(-2) - eps)
