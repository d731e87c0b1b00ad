"""Kernels of batch norm, max-pool and ReLU, of their gradients, and of the gradients of these, task by task.

With the normalised values x = (z - mean) / deviation, the outputs are relu(scale x + shift) where scale x is the largest of
every window of 2 x 2, or of 1, which is no pool. Let g be the gradient by the outputs where they are not 0, P g the same
put where the largest lie, n the pixels of a channel, and f = scale / deviation. The first gradients are

    by shift: G = sum of g,   by scale: S = sum of g x,   by z: f (P g - G / n - x S / n)

Let t, s and u be the gradients by these three (`grad_grad_...`), U the sum of u, Q that of u x, and D that of u P g. What
they add up to is

    f R + s S + t G,   where R = D - G U / n - S Q / n

The second gradients are its derivatives. With a = s - f Q / n and c = -f S / n, it changes with x by a P g + c u:

    by scale: R / deviation,   by g: f (u - U / n - x Q / n) + s x + t at the largest,
    by z: (a P g + c u - (a G + c U) / n - x (a S + c Q + f R) / n) / deviation

Every gradient takes two kernels: one for the sums of a channel, which programs share, and one for all pixels. In memory the
values of a task lie as (B, H, W, C), (rows, C) for short.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from rankshot.kernels import check_single_precision, on

from .fused import larger, which_is_largest

MOST_BLOCK = 64  # channels in a tile
TILE = 4096  # values
MOST_PARTS = 128  # that share a sum: later each program adds them up for itself
ENOUGH = 528  # programs: four for each of the multiprocessors of a large GPU


class _Plan:
    """How a kernel's work is divided: into (parts of the rows, tasks, blocks of channels)."""

    def __init__(self, values: Tensor, tile: int, pool: int, *, all_windows: bool) -> None:
        self.tasks, batch, self.channels, self.height, self.width = values.shape
        self.rows = batch * self.height * self.width
        up = pool - 1 if all_windows else 0  # whether with those that an odd edge cuts off
        self.windows = batch * ((self.height + up) // pool) * ((self.width + up) // pool)
        self.block = int(min(MOST_BLOCK, triton.next_power_of_2(self.channels)))
        self.blocks = triton.cdiv(self.channels, self.block)
        self.tile = tile // self.block

    def parts(self, count: int) -> int:
        enough = triton.cdiv(ENOUGH, self.tasks * self.blocks)
        return int(max(1, min(MOST_PARTS, triton.cdiv(count, self.tile), enough)))


def forward(values: Tensor, scale: Tensor, shift: Tensor, eps: float, pool: int) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs, and the mean and variance of each channel (T, C)."""
    values, (scale, shift) = _packed(values), _as_rows(scale, shift)
    plan = _Plan(values, TILE, pool, all_windows=False)
    parts = plan.parts(plan.rows)
    length = triton.cdiv(triton.cdiv(plan.rows, parts), plan.tile) * plan.tile
    parts = triton.cdiv(plan.rows, length)
    partial = values.new_empty(plan.tasks, parts, 2, plan.channels)
    mean, variance = values.new_empty(2, plan.tasks, plan.channels)
    outputs = _empty(values, plan.height // pool, plan.width // pool)
    windows = _Plan(values, TILE // 4, pool, all_windows=False)
    with on(values):
        _moments[parts, plan.tasks, plan.blocks](values, partial, plan.rows, length, plan.channels, plan.block, plan.tile)
        _forward[windows.parts(windows.windows), plan.tasks, plan.blocks](
            values,
            partial,
            scale,
            shift,
            mean,
            variance,
            outputs,
            plan.rows,
            length,
            parts,
            windows.windows,
            plan.height,
            plan.width,
            eps,
            plan.channels,
            pool,
            triton.next_power_of_2(parts),
            plan.block,
            windows.tile,
        )
    return outputs, mean, variance


def backward(
    values: Tensor,
    scale: Tensor,
    shift: Tensor,
    mean: Tensor,
    variance: Tensor,
    grad_outputs: Tensor,
    eps: float,
    pool: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by values, scale and shift."""
    values, grad_outputs = _packed(values), _packed(grad_outputs)
    scale, shift, mean, variance = _as_rows(scale, shift, mean, variance)
    few = _Plan(values, TILE // 4, pool, all_windows=False)
    every = _Plan(values, TILE // 4, pool, all_windows=True)
    parts = few.parts(few.windows)
    partial = values.new_empty(few.tasks, parts, 2, few.channels)
    grad_scale, grad_shift = values.new_empty(2, few.tasks, few.channels)
    grad_values = _empty(values, few.height, few.width)
    of = values, grad_outputs, mean, variance, scale, shift
    shape = few.height, few.width, eps, few.channels, pool
    with on(values):
        _sums[parts, few.tasks, few.blocks](*of, partial, few.windows, *shape, few.block, few.tile)
        _backward[every.parts(every.windows), few.tasks, few.blocks](
            *of,
            partial,
            grad_values,
            grad_scale,
            grad_shift,
            every.windows,
            few.rows,
            parts,
            *shape,
            triton.next_power_of_2(parts),
            few.block,
            every.tile,
        )
    return grad_values, grad_scale, grad_shift


def double_backward(
    values: Tensor,
    scale: Tensor,
    shift: Tensor,
    mean: Tensor,
    variance: Tensor,
    grad_outputs: Tensor,
    grad_scale: Tensor,
    grad_shift: Tensor,
    grad_grad_values: Tensor,
    grad_grad_scale: Tensor,
    grad_grad_shift: Tensor,
    eps: float,
    pool: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by values, scale and grad_outputs of what `backward` gives, from the gradients by that.

    grad_scale, grad_shift   what it gave
    """
    values, grad_outputs, grad_grad_values = _packed(values), _packed(grad_outputs), _packed(grad_grad_values)
    scale, shift, mean, variance = _as_rows(scale, shift, mean, variance)
    grad_scale, grad_shift, grad_grad_scale, grad_grad_shift = _as_rows(
        grad_scale, grad_shift, grad_grad_scale, grad_grad_shift
    )
    plan = _Plan(values, TILE // 4, pool, all_windows=True)
    parts = plan.parts(plan.windows)
    partial = values.new_empty(plan.tasks, parts, 3, plan.channels)
    second_scale = values.new_empty(plan.tasks, plan.channels)
    second_values = _empty(values, plan.height, plan.width)
    second_outputs = _empty(values, plan.height // pool, plan.width // pool)
    of = values, grad_outputs, grad_grad_values, mean, variance, scale, shift
    shape = plan.height, plan.width, eps, plan.channels, pool
    with on(values):
        _double_sums[parts, plan.tasks, plan.blocks](*of, partial, plan.windows, *shape, plan.block, plan.tile)
        _double_backward[parts, plan.tasks, plan.blocks](
            *of,
            grad_scale,
            grad_shift,
            grad_grad_scale,
            grad_grad_shift,
            partial,
            second_values,
            second_scale,
            second_outputs,
            plan.windows,
            plan.rows,
            parts,
            *shape,
            triton.next_power_of_2(parts),
            plan.block,
            plan.tile,
        )
    return second_values, second_scale, second_outputs


def _as_rows(*of_channels: Tensor) -> tuple[Tensor, ...]:
    """(T, C) each, as the kernels read them."""
    return tuple(each.contiguous() for each in of_channels)


def _packed(values: Tensor) -> Tensor:
    """(T, B, C, H, W) that lies as (T, B, H, W, C)."""
    check_single_precision(values)
    return values.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)


def _empty(values: Tensor, height: int, width: int) -> Tensor:
    tasks, batch, channels = values.shape[:3]
    return values.new_empty(tasks, batch, height, width, channels).permute(0, 1, 4, 2, 3)


@triton.jit
def _moments(values, partial, rows, length, channels: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Mean of a part of the rows, and the sum of the squares of what is rest; relative to the first row of the part."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    first = tl.program_id(0) * length
    end = tl.minimum(first + length, rows)
    values += task * rows * channels
    origin = tl.load(values + first.to(tl.int64) * channels + channel, mask=real, other=0.0)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(first, end, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < end)[:, None] & real[None, :]
        value = tl.load(values + row[:, None].to(tl.int64) * channels + channel[None, :], mask=mask, other=0.0)
        value = tl.where(mask, value - origin[None, :], 0.0)
        total += value
        squares += value * value
    count = (end - first).to(tl.float32)
    moved = tl.sum(total, 0) / count
    at = partial + (task * tl.num_programs(0) + tl.program_id(0)) * 2 * channels + channel
    tl.store(at, origin + moved, mask=real)
    tl.store(at + channels, tl.sum(squares, 0) - moved * moved * count, mask=real)


@triton.jit
def _mean_and_variance(partial, rows, length, parts, channel, real, channels: tl.constexpr, PARTS: tl.constexpr):
    """Of a task, from those of its parts."""
    part = tl.arange(0, PARTS)
    at = partial + (tl.program_id(1).to(tl.int64) * parts + part)[:, None] * 2 * channels + channel[None, :]
    mask = (part < parts)[:, None] & real[None, :]
    centre, spread = tl.load(at, mask=mask, other=0.0), tl.load(at + channels, mask=mask, other=0.0)
    count = tl.where(part < parts, tl.minimum(rows - part * length, length), 0).to(tl.float32)[:, None]
    mean = tl.sum(centre * count, 0) / rows
    away = centre - mean[None, :]
    return mean, tl.maximum((tl.sum(spread, 0) + tl.sum(away * away * count, 0)) / rows, 0.0)


@triton.jit
def _total(
    partial, which: tl.constexpr, of: tl.constexpr, parts, channel, real, channels: tl.constexpr, PARTS: tl.constexpr
):
    """One of a task's sums, from those of its parts."""
    part = tl.arange(0, PARTS)
    at = partial + ((tl.program_id(1).to(tl.int64) * parts + part) * of + which)[:, None] * channels + channel[None, :]
    return tl.sum(tl.load(at, mask=(part < parts)[:, None] & real[None, :], other=0.0), 0)


@triton.jit
def _corner(window, height, width, up: tl.constexpr, POOL: tl.constexpr):
    """A window's first pixel, the place of its result, whether it has two columns, two rows, and all of its pixels.

    up   1 where windows are counted that an odd edge cuts off
    """
    column, row = window % ((width + up) // POOL), window // ((width + up) // POOL) % ((height + up) // POOL)
    image = (window // (((width + up) // POOL) * ((height + up) // POOL))).to(tl.int64)
    pixel = (image * height + POOL * row) * width + POOL * column
    place = (image * (height // POOL) + row) * (width // POOL) + column
    right, below = POOL * column + POOL - 1 < width, POOL * row + POOL - 1 < height
    return pixel, place, right & (POOL == 2), below & (POOL == 2), right & below


@triton.jit
def _at(pointer, row, mask, channel, real, channels: tl.constexpr):
    return tl.load(pointer + row[:, None] * channels + channel[None, :], mask=mask[:, None] & real[None, :], other=0.0)


@triton.jit
def _put(pointer, row, mask, channel, real, channels: tl.constexpr, value):
    tl.store(pointer + row[:, None] * channels + channel[None, :], value, mask=mask[:, None] & real[None, :])


@triton.jit
def _picked(which, a, b, c, d):
    return tl.where(which == 0, a, tl.where(which == 1, b, tl.where(which == 2, c, d)))


@triton.jit
def _forward(
    values,
    partial,
    scale,
    shift,
    means,
    variances,
    outputs,
    rows,
    length,
    parts,
    windows,
    height,
    width,
    eps,
    channels: tl.constexpr,
    POOL: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    mean, variance = _mean_and_variance(partial, rows, length, parts, channel, real, channels, PARTS)
    if tl.program_id(0) == 0:
        tl.store(means + task * channels + channel, mean, mask=real)
        tl.store(variances + task * channels + channel, variance, mask=real)
    w = tl.load(scale + task * channels + channel, mask=real, other=0.0)
    b = tl.load(shift + task * channels + channel, mask=real, other=0.0)
    r = 1 / tl.sqrt(variance + eps)
    values += task * rows * channels
    outputs += task * windows * channels
    for start in range(tl.program_id(0) * WINDOWS, windows, tl.num_programs(0) * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        pixel, place, _, _, _ = _corner(window, height, width, 0, POOL)
        best = (_at(values, pixel, exists, channel, real, channels) - mean[None, :]) * r[None, :] * w[None, :]
        for corner in tl.static_range(1, POOL * POOL):
            value = _at(values, pixel + corner // 2 * width + corner % 2, exists, channel, real, channels)
            best = larger(best, (value - mean[None, :]) * r[None, :] * w[None, :])
        _put(outputs, place, exists, channel, real, channels, larger(best + b[None, :], 0.0))


@triton.jit
def _of_channel(means, variances, scale, shift, eps, channel, real, channels: tl.constexpr):
    """Mean, 1 / deviation, scale and shift of a task's channels."""
    task = tl.program_id(1).to(tl.int64)
    mean = tl.load(means + task * channels + channel, mask=real, other=0.0)
    variance = tl.load(variances + task * channels + channel, mask=real, other=1.0)
    w = tl.load(scale + task * channels + channel, mask=real, other=0.0)
    b = tl.load(shift + task * channels + channel, mask=real, other=0.0)
    return mean, 1 / tl.sqrt(variance + eps), w, b


@triton.jit
def _normal(values, pixel, exists, channel, real, channels: tl.constexpr, mean, r):
    value = (_at(values, pixel, exists, channel, real, channels) - mean[None, :]) * r[None, :]
    return tl.where(exists[:, None] & real[None, :], value, 0.0)


@triton.jit
def _window(
    values,
    grad_outputs,
    pixel,
    place,
    width,
    exists,
    right,
    below,
    whole,
    channel,
    real,
    channels: tl.constexpr,
    mean,
    r,
    w,
    b,
    POOL: tl.constexpr,
):
    """The four normalised values of each window, which is the largest, and the gradient of its result if that is not 0."""
    x0 = _normal(values, pixel, exists, channel, real, channels, mean, r)
    x1 = _normal(values, pixel + 1, exists & right, channel, real, channels, mean, r)
    x2 = _normal(values, pixel + width, exists & below, channel, real, channels, mean, r)
    x3 = _normal(values, pixel + width + 1, exists & right & below, channel, real, channels, mean, r)
    if POOL == 2:
        which, best = which_is_largest(x0 * w[None, :], x1 * w[None, :], x2 * w[None, :], x3 * w[None, :])
    else:
        which, best = tl.zeros(x0.shape, tl.int32), x0 * w[None, :]
    g = _at(grad_outputs, place, exists & whole, channel, real, channels)
    passes = best + b[None, :] > 0
    return x0, x1, x2, x3, which, tl.where(passes, g, 0.0), passes


@triton.jit
def _sums(
    values,
    grad_outputs,
    means,
    variances,
    scale,
    shift,
    partial,
    windows,
    height,
    width,
    eps,
    channels: tl.constexpr,
    POOL: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """G and S of a part of the windows."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    mean, r, w, b = _of_channel(means, variances, scale, shift, eps, channel, real, channels)
    images = windows // ((height // POOL) * (width // POOL))
    values += task * images * height * width * channels
    grad_outputs += task * windows * channels
    sum_g = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    sum_gx = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(0) * WINDOWS, windows, tl.num_programs(0) * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        pixel, place, right, below, whole = _corner(window, height, width, 0, POOL)
        x0, x1, x2, x3, which, g, _ = _window(
            values,
            grad_outputs,
            pixel,
            place,
            width,
            exists,
            right,
            below,
            whole,
            channel,
            real,
            channels,
            mean,
            r,
            w,
            b,
            POOL,
        )
        sum_g += g
        sum_gx += g * _picked(which, x0, x1, x2, x3)
    at = partial + (task * tl.num_programs(0) + tl.program_id(0)) * 2 * channels + channel
    tl.store(at, tl.sum(sum_g, 0), mask=real)
    tl.store(at + channels, tl.sum(sum_gx, 0), mask=real)


@triton.jit
def _backward(
    values,
    grad_outputs,
    means,
    variances,
    scale,
    shift,
    partial,
    grad_values,
    grad_scale,
    grad_shift,
    windows,
    rows,
    parts,
    height,
    width,
    eps,
    channels: tl.constexpr,
    POOL: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    mean, r, w, b = _of_channel(means, variances, scale, shift, eps, channel, real, channels)
    sum_g = _total(partial, 0, 2, parts, channel, real, channels, PARTS)
    sum_gx = _total(partial, 1, 2, parts, channel, real, channels, PARTS)
    if tl.program_id(0) == 0:
        tl.store(grad_shift + task * channels + channel, sum_g, mask=real)
        tl.store(grad_scale + task * channels + channel, sum_gx, mask=real)
    sum_g, sum_gx, factor = (sum_g / rows)[None, :], (sum_gx / rows)[None, :], (w * r)[None, :]
    values += task * rows * channels
    grad_values += task * rows * channels
    grad_outputs += task * (rows // (height * width) * (height // POOL) * (width // POOL)) * channels
    for start in range(tl.program_id(0) * WINDOWS, windows, tl.num_programs(0) * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        pixel, place, right, below, whole = _corner(window, height, width, POOL - 1, POOL)
        x0, x1, x2, x3, which, g, _ = _window(
            values,
            grad_outputs,
            pixel,
            place,
            width,
            exists,
            right,
            below,
            whole,
            channel,
            real,
            channels,
            mean,
            r,
            w,
            b,
            POOL,
        )
        g0 = factor * (tl.where(which == 0, g, 0.0) - sum_g - x0 * sum_gx)
        g1 = factor * (tl.where(which == 1, g, 0.0) - sum_g - x1 * sum_gx)
        g2 = factor * (tl.where(which == 2, g, 0.0) - sum_g - x2 * sum_gx)
        g3 = factor * (tl.where(which == 3, g, 0.0) - sum_g - x3 * sum_gx)
        _put(grad_values, pixel, exists, channel, real, channels, g0)
        _put(grad_values, pixel + 1, exists & right, channel, real, channels, g1)
        _put(grad_values, pixel + width, exists & below, channel, real, channels, g2)
        _put(grad_values, pixel + width + 1, exists & right & below, channel, real, channels, g3)


@triton.jit
def _of_window(grad_grad_values, pixel, width, exists, right, below, channel, real, channels: tl.constexpr):
    u0 = _at(grad_grad_values, pixel, exists, channel, real, channels)
    u1 = _at(grad_grad_values, pixel + 1, exists & right, channel, real, channels)
    u2 = _at(grad_grad_values, pixel + width, exists & below, channel, real, channels)
    u3 = _at(grad_grad_values, pixel + width + 1, exists & right & below, channel, real, channels)
    return u0, u1, u2, u3


@triton.jit
def _double_sums(
    values,
    grad_outputs,
    grad_grad_values,
    means,
    variances,
    scale,
    shift,
    partial,
    windows,
    height,
    width,
    eps,
    channels: tl.constexpr,
    POOL: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """U, Q and D of a part of the windows."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    mean, r, w, b = _of_channel(means, variances, scale, shift, eps, channel, real, channels)
    images = windows // (((height + POOL - 1) // POOL) * ((width + POOL - 1) // POOL))
    values += task * images * height * width * channels
    grad_grad_values += task * images * height * width * channels
    grad_outputs += task * images * (height // POOL) * (width // POOL) * channels
    sum_u = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    sum_ux = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    sum_ug = tl.zeros((WINDOWS, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(0) * WINDOWS, windows, tl.num_programs(0) * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        pixel, place, right, below, whole = _corner(window, height, width, POOL - 1, POOL)
        x0, x1, x2, x3, which, g, _ = _window(
            values,
            grad_outputs,
            pixel,
            place,
            width,
            exists,
            right,
            below,
            whole,
            channel,
            real,
            channels,
            mean,
            r,
            w,
            b,
            POOL,
        )
        u0, u1, u2, u3 = _of_window(grad_grad_values, pixel, width, exists, right, below, channel, real, channels)
        sum_u += (u0 + u1) + (u2 + u3)
        sum_ux += (u0 * x0 + u1 * x1) + (u2 * x2 + u3 * x3)
        sum_ug += g * _picked(which, u0, u1, u2, u3)
    at = partial + (task * tl.num_programs(0) + tl.program_id(0)) * 3 * channels + channel
    tl.store(at, tl.sum(sum_u, 0), mask=real)
    tl.store(at + channels, tl.sum(sum_ux, 0), mask=real)
    tl.store(at + 2 * channels, tl.sum(sum_ug, 0), mask=real)


@triton.jit
def _double_backward(
    values,
    grad_outputs,
    grad_grad_values,
    means,
    variances,
    scale,
    shift,
    grad_scale,
    grad_shift,
    grad_grad_scale,
    grad_grad_shift,
    partial,
    second_values,
    second_scale,
    second_outputs,
    windows,
    rows,
    parts,
    height,
    width,
    eps,
    channels: tl.constexpr,
    POOL: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real = channel < channels
    mean, r, w, b = _of_channel(means, variances, scale, shift, eps, channel, real, channels)
    at = task * channels + channel
    sum_gx, sum_g = tl.load(grad_scale + at, mask=real, other=0.0), tl.load(grad_shift + at, mask=real, other=0.0)
    s, t = tl.load(grad_grad_scale + at, mask=real, other=0.0), tl.load(grad_grad_shift + at, mask=real, other=0.0)
    mean_u = _total(partial, 0, 3, parts, channel, real, channels, PARTS) / rows
    mean_ux = _total(partial, 1, 3, parts, channel, real, channels, PARTS) / rows
    sum_ug = _total(partial, 2, 3, parts, channel, real, channels, PARTS)
    rest = sum_ug - sum_g * mean_u - sum_gx * mean_ux
    if tl.program_id(0) == 0:
        tl.store(second_scale + at, r * rest, mask=real)
    factor = w * r
    a = s - factor * mean_ux
    c = -factor * sum_gx / rows
    constant = -(a * sum_g / rows + c * mean_u)
    along_x = -(a * sum_gx / rows + c * mean_ux + factor * rest / rows)
    a, c, constant, along_x = (r * a)[None, :], (r * c)[None, :], (r * constant)[None, :], (r * along_x)[None, :]
    values += task * rows * channels
    grad_grad_values += task * rows * channels
    second_values += task * rows * channels
    pooled = task * (rows // (height * width) * (height // POOL) * (width // POOL)) * channels
    grad_outputs += pooled
    second_outputs += pooled
    for start in range(tl.program_id(0) * WINDOWS, windows, tl.num_programs(0) * WINDOWS):
        window = start + tl.arange(0, WINDOWS)
        exists = window < windows
        pixel, place, right, below, whole = _corner(window, height, width, POOL - 1, POOL)
        x0, x1, x2, x3, which, g, passes = _window(
            values,
            grad_outputs,
            pixel,
            place,
            width,
            exists,
            right,
            below,
            whole,
            channel,
            real,
            channels,
            mean,
            r,
            w,
            b,
            POOL,
        )
        u0, u1, u2, u3 = _of_window(grad_grad_values, pixel, width, exists, right, below, channel, real, channels)
        g = g * a
        g0 = tl.where(which == 0, g, 0.0) + u0 * c + x0 * along_x + constant
        g1 = tl.where(which == 1, g, 0.0) + u1 * c + x1 * along_x + constant
        g2 = tl.where(which == 2, g, 0.0) + u2 * c + x2 * along_x + constant
        g3 = tl.where(which == 3, g, 0.0) + u3 * c + x3 * along_x + constant
        _put(second_values, pixel, exists, channel, real, channels, g0)
        _put(second_values, pixel + 1, exists & right, channel, real, channels, g1)
        _put(second_values, pixel + width, exists & below, channel, real, channels, g2)
        _put(second_values, pixel + width + 1, exists & right & below, channel, real, channels, g3)
        x, u = _picked(which, x0, x1, x2, x3), _picked(which, u0, u1, u2, u3)
        second = factor[None, :] * (u - mean_u[None, :] - x * mean_ux[None, :]) + s[None, :] * x + t[None, :]
        _put(second_outputs, place, exists & whole, channel, real, channels, tl.where(passes, second, 0.0))
