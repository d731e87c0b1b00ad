"""Batch norm, 2x2 max-pool and ReLU as one operation on a GPU: in training, and where no gradient is asked for.

Done one by one they carry the largest tensors of the network through memory again and again. Here the convolution's output
is read twice on the way forward (statistics; normalise, pool, cut) and twice on the way back, where everything between
is computed again instead of being kept. The values are those of the three layers, but for the rounding in between.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from rankshot.kernels import on

WINDOWS, ROWS = 32, 64  # of a tile, beside its channels
MOST_CHANNELS = 256
PROGRAMS = 512  # that share a sum over all rows


def fits(norm: nn.BatchNorm2d) -> bool:
    """Whether the norm is as it usually is, small enough for a tile, and in training or without gradients.

    Where `evaluate` has put another forward in place, that is to be called.
    """
    usual = norm.affine and norm.track_running_stats and norm.momentum is not None and "forward" not in vars(norm)
    return usual and (norm.training or not torch.is_grad_enabled()) and norm.num_features <= MOST_CHANNELS


def norm_pool_relu(values: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """(B, C, H, W) channels_last -> (B, C, H // 2, W // 2).

    In training by the statistics of this batch, and the running averages follow; else by these.
    """
    if not norm.training:
        with on(values):
            return pooled_by(values, norm.weight, norm.bias, *known_statistics(norm))
    mean, rstd = torch.empty_like(norm.running_mean), torch.empty_like(norm.running_var)  # type: ignore[arg-type]
    with on(values):
        pooled: Tensor = _NormPoolReLU.apply(values, norm.weight, norm.bias, mean, rstd, norm)  # type: ignore[no-untyped-call]
    return pooled


def known_statistics(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Mean and 1 / deviation of every channel, by the running averages."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean, (norm.running_var.float() + norm.eps).rsqrt()


def pooled_by(values: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    """(B, C, H, W) -> (B, C, H // 2, W // 2), by known statistics."""
    values = values.contiguous(memory_format=torch.channels_last)
    batch, channels, height, width = values.shape
    shape = (batch, channels, height // 2, width // 2)
    out = torch.empty(shape, dtype=values.dtype, device=values.device, memory_format=torch.channels_last)
    windows = batch * (height // 2) * (width // 2)
    block = triton.next_power_of_2(channels)
    grid = (triton.cdiv(windows, WINDOWS),)
    _pool[grid](values, out, weight, bias, mean, rstd, windows, height, width, channels, block, WINDOWS)
    return out


class _NormPoolReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, rstd: Tensor, norm: nn.BatchNorm2d
    ) -> Tensor:
        values = values.contiguous(memory_format=torch.channels_last)
        batch, channels, height, width = values.shape
        rows = batch * height * width
        block = triton.next_power_of_2(channels)
        programs = min(PROGRAMS, triton.cdiv(rows, ROWS))
        partial = torch.empty(2, programs, channels, device=values.device)
        _sums[(programs,)](values, partial, rows, programs, channels, block, ROWS)
        _statistics[(1,)](
            values,
            partial,
            mean,
            rstd,
            norm.running_mean,
            norm.running_var,
            norm.num_batches_tracked,
            rows,
            programs,
            channels,
            norm.eps,
            norm.momentum,
            block,
            ROWS,
        )
        out = pooled_by(values, weight, bias, mean, rstd)
        ctx.save_for_backward(values, weight, bias, mean, rstd)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "Conv4 on a GPU cannot be differentiated twice in training: call backward without create_graph"
            )
        values, weight, bias, mean, rstd = ctx.saved_tensors
        grad = grad.contiguous(memory_format=torch.channels_last)
        batch, channels, height, width = values.shape
        block = triton.next_power_of_2(channels)
        windows = batch * (height // 2) * (width // 2)
        programs = min(PROGRAMS, triton.cdiv(windows, WINDOWS))
        partial = torch.empty(2, programs, channels, device=values.device)
        shape = (height, width, channels, block, WINDOWS)
        _gradient_sums[(programs,)](values, grad, weight, bias, mean, rstd, partial, windows, programs, *shape)
        by_bias, by_weight = partial.sum(1)
        by_values = torch.empty_like(values)
        all_windows = batch * triton.cdiv(height, 2) * triton.cdiv(width, 2)  # also those cut off by an odd edge
        _gradient[(triton.cdiv(all_windows, WINDOWS),)](
            values,
            grad,
            weight,
            bias,
            mean,
            rstd,
            by_weight,
            by_bias,
            by_values,
            all_windows,
            batch * height * width,
            *shape,
        )
        return by_values, by_weight, by_bias, None, None, None


@triton.jit
def _sums(values, partial, rows, programs, channels, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Sums and squares of every channel, relative to its first value: no digits are lost to a mean far from 0."""
    channel = tl.arange(0, BLOCK)
    real = channel < channels
    origin = tl.load(values + channel, mask=real, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, programs * ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & real[None, :]
        value = tl.load(values + row[:, None].to(tl.int64) * channels + channel[None, :], mask=mask, other=0.0)
        value = tl.where(mask, value.to(tl.float32) - origin[None, :], 0.0)
        total += value
        squares += value * value
    offset = tl.program_id(0) * channels + channel
    tl.store(partial + offset, tl.sum(total, 0), mask=real)
    tl.store(partial + programs * channels + offset, tl.sum(squares, 0), mask=real)


@triton.jit
def _statistics(
    values,
    partial,
    mean,
    rstd,
    running_mean,
    running_var,
    tracked,
    rows,
    programs,
    channels,
    eps,
    momentum,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """From the sums to mean and 1 / deviation of every channel, and the running averages one batch further."""
    channel = tl.arange(0, BLOCK)
    real = channel < channels
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, programs, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < programs)[:, None] & real[None, :]
        offset = row[:, None] * channels + channel[None, :]
        total += tl.load(partial + offset, mask=mask, other=0.0)
        squares += tl.load(partial + programs * channels + offset, mask=mask, other=0.0)
    shift = tl.sum(total, 0) / rows
    variance = tl.maximum(tl.sum(squares, 0) / rows - shift * shift, 0.0)
    centre = tl.load(values + channel, mask=real, other=0.0).to(tl.float32) + shift
    tl.store(mean + channel, centre, mask=real)
    tl.store(rstd + channel, 1 / tl.sqrt(variance + eps), mask=real)
    old = tl.load(running_mean + channel, mask=real)
    tl.store(running_mean + channel, old + momentum * (centre - old), mask=real)
    old = tl.load(running_var + channel, mask=real)
    tl.store(running_var + channel, old + momentum * (variance * (rows / (rows - 1)) - old), mask=real)
    tl.store(tracked, tl.load(tracked) + 1)


@triton.jit
def _corner(window, height, width, columns, rows_of_windows):
    """Row and column of a window's first pixel, and the number of that pixel among all of the batch."""
    column = window % columns * 2
    row = window // columns % rows_of_windows * 2
    image = window // (columns * rows_of_windows)
    return row, column, (image.to(tl.int64) * height + row) * width + column


@triton.jit
def _normal(values, pixel, in_range, channel, channels, real, mean, rstd):
    value = tl.load(
        values + pixel[:, None] * channels + channel[None, :], mask=in_range[:, None] & real[None, :], other=0.0
    )
    return (value.to(tl.float32) - mean[None, :]) * rstd[None, :]


@triton.jit
def larger(a, b):
    """As torch has it: what is not a number stays so."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _pool(
    values, out, weight, bias, mean, rstd, windows, height, width, channels, BLOCK: tl.constexpr, WINDOWS: tl.constexpr
):
    channel = tl.arange(0, BLOCK)
    real = channel < channels
    w, b = tl.load(weight + channel, mask=real), tl.load(bias + channel, mask=real)
    m, r = tl.load(mean + channel, mask=real), tl.load(rstd + channel, mask=real)
    window = tl.program_id(0) * WINDOWS + tl.arange(0, WINDOWS)
    in_range = window < windows
    _, _, pixel = _corner(window, height, width, width // 2, height // 2)
    best = _normal(values, pixel, in_range, channel, channels, real, m, r) * w[None, :]
    best = larger(best, _normal(values, pixel + 1, in_range, channel, channels, real, m, r) * w[None, :])
    best = larger(best, _normal(values, pixel + width, in_range, channel, channels, real, m, r) * w[None, :])
    best = larger(best, _normal(values, pixel + width + 1, in_range, channel, channels, real, m, r) * w[None, :])
    best = larger(best + b[None, :], 0.0)
    offset = window[:, None].to(tl.int64) * channels + channel[None, :]
    tl.store(out + offset, best.to(out.dtype.element_ty), mask=in_range[:, None] & real[None, :])


@triton.jit
def which_is_largest(a, b, c, d):
    """Which of four is the largest, of equals the first, and how large."""
    best = larger(larger(a, b), larger(c, d))
    return tl.where(a == best, 0, tl.where(b == best, 1, tl.where(c == best, 2, 3))), best


@triton.jit
def _gradient_sums(
    values,
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
    channels,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """Sums of the gradient, and of gradient times normalised value, over the pixels that were passed on."""
    channel = tl.arange(0, BLOCK)
    real = channel < channels
    w, b = tl.load(weight + channel, mask=real), tl.load(bias + channel, mask=real)
    m, r = tl.load(mean + channel, mask=real), tl.load(rstd + channel, mask=real)
    by_bias = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    by_weight = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(0) * WINDOWS, windows, programs * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        in_range = window < windows
        _, _, pixel = _corner(window, height, width, width // 2, height // 2)
        x0 = _normal(values, pixel, in_range, channel, channels, real, m, r)
        x1 = _normal(values, pixel + 1, in_range, channel, channels, real, m, r)
        x2 = _normal(values, pixel + width, in_range, channel, channels, real, m, r)
        x3 = _normal(values, pixel + width + 1, in_range, channel, channels, real, m, r)
        which, best = which_is_largest(x0 * w[None, :], x1 * w[None, :], x2 * w[None, :], x3 * w[None, :])
        mask = in_range[:, None] & real[None, :]
        g = tl.load(grad + window[:, None].to(tl.int64) * channels + channel[None, :], mask=mask, other=0.0).to(tl.float32)
        g = tl.where(best + b[None, :] > 0, g, 0.0)
        chosen = tl.where(which == 0, x0, tl.where(which == 1, x1, tl.where(which == 2, x2, x3)))
        by_bias += g
        by_weight += tl.where(mask, g * chosen, 0.0)
    offset = tl.program_id(0) * channels + channel
    tl.store(partial + offset, tl.sum(by_bias, 0), mask=real)
    tl.store(partial + programs * channels + offset, tl.sum(by_weight, 0), mask=real)


@triton.jit
def _gradient(
    values,
    grad,
    weight,
    bias,
    mean,
    rstd,
    by_weight,
    by_bias,
    by_values,
    windows,
    pixels,
    height,
    width,
    channels,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """The gradient by every pixel: what came through its window, less what it changes of mean and deviation."""
    channel = tl.arange(0, BLOCK)
    real = channel < channels
    w, b = tl.load(weight + channel, mask=real), tl.load(bias + channel, mask=real)
    m, r = tl.load(mean + channel, mask=real), tl.load(rstd + channel, mask=real)
    of_mean = tl.load(by_bias + channel, mask=real) / pixels
    of_deviation = tl.load(by_weight + channel, mask=real) / pixels
    window = tl.program_id(0) * WINDOWS + tl.arange(0, WINDOWS)
    row, column, pixel = _corner(window, height, width, (width + 1) // 2, (height + 1) // 2)
    in_range = window < windows
    right, below = in_range & (column + 1 < width), in_range & (row + 1 < height)
    both = right & below
    x0 = _normal(values, pixel, in_range, channel, channels, real, m, r)
    x1 = _normal(values, pixel + 1, right, channel, channels, real, m, r)
    x2 = _normal(values, pixel + width, below, channel, channels, real, m, r)
    x3 = _normal(values, pixel + width + 1, both, channel, channels, real, m, r)
    which, best = which_is_largest(x0 * w[None, :], x1 * w[None, :], x2 * w[None, :], x3 * w[None, :])
    image = (window // (((width + 1) // 2) * ((height + 1) // 2))).to(tl.int64)
    pooled = (image * (height // 2) + row // 2) * (width // 2) + column // 2
    mask = both[:, None] & real[None, :]  # an incomplete window was not pooled
    g = tl.load(grad + pooled[:, None] * channels + channel[None, :], mask=mask, other=0.0).to(tl.float32)
    g = tl.where(best + b[None, :] > 0, g, 0.0)
    factor = (w * r)[None, :]
    offset = pixel[:, None] * channels + channel[None, :]
    kind = by_values.dtype.element_ty
    g0 = tl.where(which == 0, g, 0.0) - of_mean[None, :] - x0 * of_deviation[None, :]
    g1 = tl.where(which == 1, g, 0.0) - of_mean[None, :] - x1 * of_deviation[None, :]
    g2 = tl.where(which == 2, g, 0.0) - of_mean[None, :] - x2 * of_deviation[None, :]
    g3 = tl.where(which == 3, g, 0.0) - of_mean[None, :] - x3 * of_deviation[None, :]
    tl.store(by_values + offset, (factor * g0).to(kind), mask=in_range[:, None] & real[None, :])
    tl.store(by_values + offset + channels, (factor * g1).to(kind), mask=right[:, None] & real[None, :])
    tl.store(by_values + offset + width * channels, (factor * g2).to(kind), mask=below[:, None] & real[None, :])
    tl.store(by_values + offset + (width + 1) * channels, (factor * g3).to(kind), mask=mask)
