"""The first block of Conv4 as one operation on a GPU: convolution, batch norm, 2x2 max-pool and ReLU.

The first convolution has the largest output of the network and hardly any work: 9 values a channel of the image. So its
output is never written. Each kernel computes it anew from the image, which is smaller by far.

What batch norm needs of all outputs follows from the moments of the patches p that the filters see. With n patches, their
sum s and the sum M of their products p p', a filter w has the mean w's / n and the mean square w'M w / n. The same moments
give the gradient by the filters, where g is the gradient that came through pooling and ReLU, and x the normalised output:

    sum of (g - mean(g) - x mean(g x)) p  =  sum of g p  -  mean(g) s  -  mean(g x) (M w - mean s) / deviation

Only the first sum needs a look at every pixel.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from rankshot.kernels import on

from .fused import known_statistics, larger, which_is_largest

PATCHES, WINDOWS = 128, 64  # of a tile
PROGRAMS = 528  # that share a sum over all pixels
MOST_VALUES = 31  # of a patch; the one after them counts the patches
MOST_FILTERS = 128
MOST_NUMBERS = 2**31
OLDEST = (8, 0)  # compute capability: before, Triton cannot multiply bfloat16


def is_first(images: Tensor, convolution: nn.Conv2d) -> bool:
    """Whether a block sees images of few channels, which learn nothing, and computes in 16 bits."""
    kind = images.device.type
    new = kind != "cuda" or torch.cuda.get_device_capability(images.device) >= OLDEST
    few = 9 * images.shape[1] <= MOST_VALUES and convolution.out_channels <= MOST_FILTERS
    small = images.numel() // images.shape[1] * convolution.out_channels < MOST_NUMBERS
    return new and few and small and torch.is_autocast_enabled(kind) and not images.requires_grad


def first_block(images: Tensor, convolution: nn.Conv2d, norm: nn.BatchNorm2d, dtype: torch.dtype | None = None) -> Tensor:
    """(B, C, H, W) -> (B, F, H // 2, W // 2).

    In training by the statistics of this batch, and the running averages follow; else by these.

    dtype   of the images and filters as they are multiplied; None: that of autocast
    """
    images = images.to(dtype or torch.get_autocast_dtype(images.device.type))
    with on(images):
        if not norm.training:
            images = images.contiguous(memory_format=torch.channels_last)
            return _pooled_by(
                images, _flat(convolution.weight, images.dtype), norm.weight, norm.bias, *known_statistics(norm)
            )
        pooled: Tensor = _FirstBlock.apply(images, convolution.weight, norm.weight, norm.bias, norm)  # type: ignore[no-untyped-call]
    return pooled


class _FirstBlock(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, filters: Tensor, weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d) -> Tensor:
        images = images.contiguous(memory_format=torch.channels_last)
        batch, channels, height, width = images.shape
        taps = 9 * channels
        flat = _flat(filters, images.dtype)
        values = flat.shape[1]
        count = batch * height * width
        programs = min(PROGRAMS, triton.cdiv(count, PATCHES))
        partial = torch.empty(programs, values, values, device=images.device)
        _moments[(programs,)](images, partial, count, programs, height, width, channels, values, PATCHES)
        moments = partial.sum(0, dtype=torch.float64)
        products = flat.double() @ moments  # (F, values): M w, and w's where the patches are counted
        mean = products[:, taps] / count
        variance = ((products * flat).sum(1) / count - mean.square()).clamp_min(0)
        rstd = (variance + norm.eps).rsqrt()
        _follow(norm, mean, variance * (count / (count - 1)))
        out = _pooled_by(images, flat, weight, bias, mean.float(), rstd.float())
        ctx.save_for_backward(images, flat, weight, bias, mean, rstd, moments, products)
        ctx.dtype = filters.dtype
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "Conv4 on a GPU cannot be differentiated twice in training: call backward without create_graph"
            )
        images, flat, weight, bias, mean, rstd, moments, products = ctx.saved_tensors
        grad = grad.contiguous(memory_format=torch.channels_last)
        batch, channels, height, width = images.shape
        filters, values = flat.shape
        taps, count = 9 * channels, batch * height * width
        windows = batch * (height // 2) * (width // 2)
        programs = min(PROGRAMS, triton.cdiv(windows, WINDOWS))
        partial = torch.empty(programs, filters, values + 2, device=images.device)
        few = mean.float(), rstd.float()
        shape = (height, width, channels, filters, values, _block(flat), WINDOWS)
        _gradient_sums[(programs,)](images, flat, grad, weight, bias, *few, partial, windows, programs, *shape)
        sums = partial.sum(0)
        through, by_bias, by_weight = sums[:, :taps], sums[:, values], sums[:, values + 1]
        patches, seen = moments[taps, :taps], products[:, :taps]
        of_mean = torch.outer(by_bias.double() / count, patches)
        of_deviation = (by_weight * rstd / count)[:, None] * (seen - torch.outer(mean, patches))
        by_filters = (weight * rstd)[:, None] * (through - of_mean - of_deviation)
        by_filters = by_filters.to(ctx.dtype).view(filters, 3, 3, channels).permute(0, 3, 1, 2)
        return None, by_filters, by_weight, by_bias, None


def _flat(filters: Tensor, dtype: torch.dtype) -> Tensor:
    """(F, C, 3, 3) -> (F, values): as channels_last has the values of a patch, filled up with zeros."""
    taps = filters[0].numel()
    flat = filters.detach().permute(0, 2, 3, 1).reshape(len(filters), taps)
    return nn.functional.pad(flat, (0, max(16, triton.next_power_of_2(taps + 1)) - taps)).to(dtype)


def _pooled_by(images: Tensor, flat: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    """(B, C, H, W) channels_last, (F, values) -> (B, F, H // 2, W // 2), by known statistics."""
    batch, channels, height, width = images.shape
    filters, values = flat.shape
    shape = (batch, filters, height // 2, width // 2)
    out = torch.empty(shape, dtype=images.dtype, device=images.device, memory_format=torch.channels_last)
    windows = batch * (height // 2) * (width // 2)
    sizes = (height, width, channels, filters, values, _block(flat), WINDOWS)
    _pooled[(triton.cdiv(windows, WINDOWS),)](images, flat, out, weight, bias, mean, rstd, windows, *sizes)
    return out


def _block(filters: Tensor) -> int:
    return max(16, int(triton.next_power_of_2(len(filters))))


def _follow(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> None:
    """Running averages, one batch further."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), norm.momentum)
    norm.running_var.lerp_(variance.to(norm.running_var.dtype), norm.momentum)
    norm.num_batches_tracked.add_(1)


@triton.jit
def _patch(images, image, row, column, exists, height, width, channels, VALUES: tl.constexpr):
    """(T, VALUES): what the filters see around a pixel, row by row; 0 beyond the image."""
    value = tl.arange(0, VALUES)
    y = row[:, None] + (value // (3 * channels) - 1)[None, :]
    x = column[:, None] + (value // channels % 3 - 1)[None, :]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & exists[:, None] & (value < 9 * channels)[None, :]
    offset = ((image[:, None] * height + y) * width + x) * channels + (value % channels)[None, :]
    return tl.load(images + offset, mask=inside, other=0.0)


@triton.jit
def _moments(
    images, partial, count, programs, height, width, channels: tl.constexpr, VALUES: tl.constexpr, PATCHES: tl.constexpr
):
    """Sums of the products of a patch's values; one more value, which is 1, gives their sums and how many there are."""
    value = tl.arange(0, VALUES)
    total = tl.zeros((VALUES, VALUES), dtype=tl.float32)
    for start in range(tl.program_id(0) * PATCHES, count, programs * PATCHES):
        pixel = start + tl.arange(0, PATCHES)
        exists = pixel < count
        image = pixel // (width * height)
        patch = _patch(images, image, pixel // width % height, pixel % width, exists, height, width, channels, VALUES)
        is_count = (value == 9 * channels)[None, :] & exists[:, None]
        patch = tl.where(is_count, 1.0, patch.to(tl.float32)).to(images.dtype.element_ty)
        total = tl.dot(tl.trans(patch), patch, total, input_precision="ieee")
    offset = tl.program_id(0) * VALUES * VALUES + value[:, None] * VALUES + value[None, :]
    tl.store(partial + offset, total)


@triton.jit
def _filtered(patch, filters, mean, rstd):
    """(WINDOWS, F): a filter's output, normalised."""
    return (tl.dot(patch, filters, input_precision="ieee") - mean[None, :]) * rstd[None, :]


@triton.jit
def _filters(filters, channel, real, VALUES: tl.constexpr):
    """(VALUES, F)"""
    value = tl.arange(0, VALUES)
    return tl.load(filters + channel[None, :] * VALUES + value[:, None], mask=real[None, :], other=0.0)


@triton.jit
def _pooled(
    images,
    filters,
    out,
    weight,
    bias,
    mean,
    rstd,
    windows,
    height,
    width,
    channels: tl.constexpr,
    outputs,
    VALUES: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    channel = tl.arange(0, BLOCK)
    real = channel < outputs
    w, b = tl.load(weight + channel, mask=real), tl.load(bias + channel, mask=real)
    m, r = tl.load(mean + channel, mask=real), tl.load(rstd + channel, mask=real)
    f = _filters(filters, channel, real, VALUES)
    window = tl.program_id(0) * WINDOWS + tl.arange(0, WINDOWS)
    exists = window < windows
    column, row = window % (width // 2) * 2, window // (width // 2) % (height // 2) * 2
    image = window // (width // 2 * (height // 2))
    best = tl.full((WINDOWS, BLOCK), float("-inf"), dtype=tl.float32)
    for corner in tl.static_range(4):
        patch = _patch(images, image, row + corner // 2, column + corner % 2, exists, height, width, channels, VALUES)
        best = larger(best, _filtered(patch, f, m, r) * w[None, :])
    best = larger(best + b[None, :], 0.0)
    offset = window[:, None] * outputs + channel[None, :]
    tl.store(out + offset, best.to(out.dtype.element_ty), mask=exists[:, None] & real[None, :])


@triton.jit
def _gradient_sums(
    images,
    filters,
    grad,
    weight,
    bias,
    mean,
    rstd,
    partial,
    windows,
    programs,
    height,
    width,
    channels: tl.constexpr,
    outputs,
    VALUES: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """Sums over the pixels that were passed on: of the gradient times the patch, the gradient, and it times the output."""
    channel = tl.arange(0, BLOCK)
    real = channel < outputs
    w, b = tl.load(weight + channel, mask=real), tl.load(bias + channel, mask=real)
    m, r = tl.load(mean + channel, mask=real), tl.load(rstd + channel, mask=real)
    f = _filters(filters, channel, real, VALUES)
    through = tl.zeros((BLOCK, VALUES), dtype=tl.float32)
    by_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    by_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(tl.program_id(0) * WINDOWS, windows, programs * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        column, row = window % (width // 2) * 2, window // (width // 2) % (height // 2) * 2
        image = window // (width // 2 * (height // 2))
        p0 = _patch(images, image, row, column, exists, height, width, channels, VALUES)
        p1 = _patch(images, image, row, column + 1, exists, height, width, channels, VALUES)
        p2 = _patch(images, image, row + 1, column, exists, height, width, channels, VALUES)
        p3 = _patch(images, image, row + 1, column + 1, exists, height, width, channels, VALUES)
        x0, x1 = _filtered(p0, f, m, r), _filtered(p1, f, m, r)
        x2, x3 = _filtered(p2, f, m, r), _filtered(p3, f, m, r)
        which, best = which_is_largest(x0 * w[None, :], x1 * w[None, :], x2 * w[None, :], x3 * w[None, :])
        mask = exists[:, None] & real[None, :]
        g = tl.load(grad + window[:, None] * outputs + channel[None, :], mask=mask, other=0.0).to(tl.float32)
        g = tl.where(best + b[None, :] > 0, g, 0.0)
        chosen = tl.where(which == 0, x0, tl.where(which == 1, x1, tl.where(which == 2, x2, x3)))
        by_bias += tl.sum(g, 0)
        by_weight += tl.sum(tl.where(mask, g * chosen, 0.0), 0)
        kind = images.dtype.element_ty
        g0 = tl.trans(tl.where(which == 0, g, 0.0).to(kind))
        g1 = tl.trans(tl.where(which == 1, g, 0.0).to(kind))
        g2 = tl.trans(tl.where(which == 2, g, 0.0).to(kind))
        g3 = tl.trans(tl.where(which == 3, g, 0.0).to(kind))
        through = tl.dot(g0, p0, through, input_precision="ieee")
        through = tl.dot(g1, p1, through, input_precision="ieee")
        through = tl.dot(g2, p2, through, input_precision="ieee")
        through = tl.dot(g3, p3, through, input_precision="ieee")
    line = (tl.program_id(0) * outputs + channel) * (VALUES + 2)
    value = tl.arange(0, VALUES)
    tl.store(partial + line[:, None] + value[None, :], through, mask=real[:, None])
    tl.store(partial + line + VALUES, by_bias, mask=real)
    tl.store(partial + line + VALUES + 1, by_weight, mask=real)
