"""Kernels of convolutions with 3 x 3 filters, which every task has of its own, and of their gradients by the filters.

A convolution is nine products of matrices, one for each place in a filter: [pixels, C] by [C, F], where the pixels are
shifted by the place. Of few channels, as images have, all nine fit into one product. Images and filters may lie in memory
as they like; results lie as (T, B, H, W, F), and gradients by filters as (T, F, 3, 3, C). With a stride of 2, only every
second pixel of every second row is a centre.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankshot.kernels import check_single_precision, on

MOST_PATCH = 32  # values in a patch of few channels
MOST_BLOCK = 64  # channels in a tile
PIXELS = 128, 64, 32, 16  # in a tile: as many as leave enough programs
ENOUGH = 264  # programs: two for each of the multiprocessors of a large GPU
DEPTH = 32  # pixels in a tile that is summed over
OLDEST = (8, 0)  # compute capability that has tf32
MOST_PARTS = 128  # of a sum over all pixels


def convolve(values: Tensor, filters: Tensor, stride: int = 1, *, back_to: tuple[int, int] | None = None) -> Tensor:
    """(T, B, C, H, W), (T, F, C, 3, 3) -> (T, B, F, H, W), with a stride of 2 half of the height and width, rounded up.

    back_to   from (T, B, F, H, W) to (T, B, C, *back_to): the gradient by the values, what the filters give turned round
    """
    check_single_precision(values)
    check_single_precision(filters)
    tasks, batch, inputs, *size = values.shape
    outputs = filters.shape[2 if back_to else 1]
    by_task, by_filter, by_channel, by_row, by_column = filters.stride()
    lies = (
        (by_task, by_filter, by_channel, -by_row, -by_column, 2 * (by_row + by_column))
        if back_to
        else (by_task, by_channel, by_filter, by_row, by_column, 0)
    )
    height, width = back_to or _halved(size, stride)
    results = torch.empty(tasks, batch, height, width, outputs, device=values.device, dtype=values.dtype)
    pixels = batch * height * width
    tile = next((size for size in PIXELS if triton.cdiv(pixels, size) * tasks >= ENOUGH), PIXELS[-1])
    block = _block(outputs)
    grid = triton.cdiv(pixels, tile), tasks, triton.cdiv(outputs, block)
    shape = pixels, height, width, *size, inputs, outputs
    few = 9 * inputs <= MOST_PATCH
    kernel, depth = (_convolve_few, _patch(inputs)) if few else (_convolve, min(_block(inputs), 32))
    places = stride, back_to is not None
    with on(values):
        kernel[grid](
            values,
            filters,
            results,
            *shape,
            *values.stride(),
            *lies,
            *places,
            depth,
            block,
            tile,
            _precision(values),
            num_warps=4,
        )
    return results.permute(0, 1, 4, 2, 3)


def correlate(values: Tensor, results: Tensor, stride: int = 1) -> Tensor:
    """(T, B, C, H, W) and what `convolve` makes of it, (T, B, F, …) -> (T, F, C, 3, 3): the gradient by the filters.

    Each program sums over a part of the pixels. The sums are added up in one order, always the same.
    """
    check_single_precision(values)
    check_single_precision(results)
    tasks, batch, inputs, *size = values.shape
    outputs, height, width = results.shape[2:]
    pixels = batch * height * width
    few = 9 * inputs <= MOST_PATCH
    block = _block(outputs)
    others = 1 if few else 3 * triton.cdiv(inputs, _block(inputs))
    programs = tasks * triton.cdiv(outputs, block) * others
    parts = min(triton.cdiv(pixels, DEPTH), MOST_PARTS, triton.cdiv(2 * ENOUGH, programs))
    length = triton.cdiv(triton.cdiv(pixels, parts), DEPTH) * DEPTH
    parts = triton.cdiv(pixels, length)
    partial = torch.empty(parts, tasks, outputs, 3, 3, inputs, device=values.device, dtype=values.dtype)
    kernel, channels = (_correlate_few, _patch(inputs)) if few else (_correlate, _block(inputs))
    shape = pixels, length, height, width, *size, inputs, outputs
    grid = parts, tasks * others, triton.cdiv(outputs, block)
    with on(values):
        kernel[grid](
            values,
            results,
            partial,
            *shape,
            *values.stride(),
            *results.stride(),
            stride,
            channels,
            block,
            DEPTH,
            _precision(values),
            num_warps=4,
        )
    total = partial[0] if parts == 1 else partial.sum(0)
    return total.permute(0, 1, 4, 2, 3)


def _halved(size: Sequence[int], stride: int) -> tuple[int, ...]:
    return tuple((each - 1) // stride + 1 for each in size)


def _block(channels: int) -> int:
    return int(min(MOST_BLOCK, max(16, triton.next_power_of_2(channels))))


def _patch(channels: int) -> int:
    return int(max(16, triton.next_power_of_2(9 * channels)))


def _precision(values: Tensor) -> str:
    """As torch would multiply, where the device can."""
    able = values.is_cuda and torch.cuda.get_device_capability(values.device) >= OLDEST
    return "tf32" if able and torch.backends.cudnn.allow_tf32 else "ieee"


@triton.jit
def _place(pixel, height, width):
    return pixel // (width * height), pixel // width % height, pixel % width


@triton.jit
def _beside(centre, step, length, STRIDE: tl.constexpr, BACK: tl.constexpr):
    """Which row, or column, of the values is `step` beside a centre, and whether there is one.

    BACK   from the values of `convolve` to its results: of a stride of 2, every second one was a centre
    """
    if BACK:
        place = centre + step
        exists = (place >= 0) & (place % STRIDE == 0)
        place = place // STRIDE
    else:
        place = centre * STRIDE + step
        exists = place >= 0
    return place, exists & (place < length)


@triton.jit
def _convolve(
    values,
    filters,
    results,
    pixels,
    height,
    width,
    v_height,
    v_width,
    inputs: tl.constexpr,
    outputs: tl.constexpr,
    v_task,
    v_image,
    v_channel,
    v_row,
    v_column,
    f_task,
    f_input,
    f_output,
    f_row,
    f_column,
    f_first,
    STRIDE: tl.constexpr,
    BACK: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    PIXELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    task = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    image, row, column = _place(pixel, height, width)
    of_image = values + task * v_task + image.to(tl.int64) * v_image
    output = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    of_output = filters + task * f_task + f_first + output * f_output
    blocks: tl.constexpr = (inputs + DEPTH - 1) // DEPTH
    total = tl.zeros((PIXELS, BLOCK), dtype=tl.float32)
    for step in range(9 * blocks):
        tap = step // blocks
        down, right = tap // 3, tap % 3
        y, is_row = _beside(row, down - 1, v_height, STRIDE, BACK)
        x, is_column = _beside(column, right - 1, v_width, STRIDE, BACK)
        inside = (pixel < pixels) & is_row & is_column
        channel = step % blocks * DEPTH + tl.arange(0, DEPTH)
        real = channel < inputs
        at = of_image + y * v_row + x * v_column
        seen = tl.load(at[:, None] + (channel * v_channel)[None, :], mask=inside[:, None] & real[None, :], other=0.0)
        at = of_output + down * f_row + right * f_column
        weight = tl.load(
            at[None, :] + (channel * f_input)[:, None], mask=real[:, None] & (output < outputs)[None, :], other=0.0
        )
        total = tl.dot(seen, weight, total, input_precision=PRECISION)
    offset = (task * pixels + pixel) * outputs
    tl.store(
        results + offset[:, None] + output[None, :], total, mask=(pixel < pixels)[:, None] & (output < outputs)[None, :]
    )


@triton.jit
def _seen(
    at,
    row,
    column,
    exists,
    height,
    width,
    inputs: tl.constexpr,
    channel,
    v_channel,
    v_row,
    v_column,
    place,
    STRIDE: tl.constexpr,
    BACK: tl.constexpr,
):
    """(values of a patch, pixels): what the filters see around each pixel; 0 beyond the image.

    place   of the value in the patch, of nine
    """
    y, is_row = _beside(row[None, :], (place // 3 - 1)[:, None], height, STRIDE, BACK)
    x, is_column = _beside(column[None, :], (place % 3 - 1)[:, None], width, STRIDE, BACK)
    inside = is_row & is_column & exists[None, :] & (place < 9)[:, None]
    return tl.load(at[None, :] + channel[:, None] * v_channel + y * v_row + x * v_column, mask=inside, other=0.0)


@triton.jit
def _convolve_few(
    values,
    filters,
    results,
    pixels,
    height,
    width,
    v_height,
    v_width,
    inputs: tl.constexpr,
    outputs: tl.constexpr,
    v_task,
    v_image,
    v_channel,
    v_row,
    v_column,
    f_task,
    f_input,
    f_output,
    f_row,
    f_column,
    f_first,
    STRIDE: tl.constexpr,
    BACK: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    PIXELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """All nine products at once. The pixels are the last axis of a patch, as neighbours in memory are in images."""
    task = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    image, row, column = _place(pixel, height, width)
    exists = pixel < pixels
    of_image = values + task * v_task + image.to(tl.int64) * v_image
    each = tl.arange(0, DEPTH)
    place, channel = each // inputs, each % inputs
    seen = _seen(
        of_image, row, column, exists, v_height, v_width, inputs, channel, v_channel, v_row, v_column, place, STRIDE, BACK
    )
    output = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    at = filters + task * f_task + f_first + output * f_output
    within = channel * f_input + place // 3 * f_row + place % 3 * f_column
    weight = tl.load(at[None, :] + within[:, None], mask=(place < 9)[:, None] & (output < outputs)[None, :], other=0.0)
    total = tl.dot(tl.trans(seen), weight, input_precision=PRECISION)
    offset = (task * pixels + pixel) * outputs
    tl.store(results + offset[:, None] + output[None, :], total, mask=exists[:, None] & (output < outputs)[None, :])


@triton.jit
def _shifted(at, column, right: tl.constexpr, exists, width, channel, real, v_channel, v_column, STRIDE: tl.constexpr):
    """(pixels, channels): the values of a row that are beside each pixel; 0 beyond the image."""
    x, is_column = _beside(column, right, width, STRIDE, False)
    at = at + x * v_column
    mask = (exists & is_column)[:, None] & real[None, :]
    return tl.load(at[:, None] + (channel * v_channel)[None, :], mask=mask, other=0.0)


@triton.jit
def _correlate(
    values,
    results,
    partial,
    pixels,
    length,
    height,
    width,
    v_height,
    v_width,
    inputs: tl.constexpr,
    outputs: tl.constexpr,
    v_task,
    v_image,
    v_channel,
    v_row,
    v_column,
    r_task,
    r_image,
    r_channel,
    r_row,
    r_column,
    STRIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One row of the filters of a task: three products over a part of the pixels."""
    blocks: tl.constexpr = (inputs + CHANNELS - 1) // CHANNELS
    others = tl.program_id(1)
    task, down = (others // (3 * blocks)).to(tl.int64), others // blocks % 3
    channel = others % blocks * CHANNELS + tl.arange(0, CHANNELS)
    output = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    real, wanted = channel < inputs, output < outputs
    left = tl.zeros((BLOCK, CHANNELS), dtype=tl.float32)
    middle = tl.zeros((BLOCK, CHANNELS), dtype=tl.float32)
    right = tl.zeros((BLOCK, CHANNELS), dtype=tl.float32)
    first = tl.program_id(0) * length
    end = tl.minimum(first + length, pixels)
    for start in range(first, end, DEPTH):
        pixel = start + tl.arange(0, DEPTH)
        exists = pixel < end
        image, row, column = _place(pixel, height, width)
        at = results + task * r_task + image.to(tl.int64) * r_image + row * r_row + column * r_column
        result = tl.load(at[:, None] + (output * r_channel)[None, :], mask=exists[:, None] & wanted[None, :], other=0.0)
        result = tl.trans(result)
        y, is_row = _beside(row, down - 1, v_height, STRIDE, False)
        is_row &= exists
        at = values + task * v_task + image.to(tl.int64) * v_image + y * v_row
        seen = _shifted(at, column, -1, is_row, v_width, channel, real, v_channel, v_column, STRIDE)
        left = tl.dot(result, seen, left, input_precision=PRECISION)
        seen = _shifted(at, column, 0, is_row, v_width, channel, real, v_channel, v_column, STRIDE)
        middle = tl.dot(result, seen, middle, input_precision=PRECISION)
        seen = _shifted(at, column, 1, is_row, v_width, channel, real, v_channel, v_column, STRIDE)
        right = tl.dot(result, seen, right, input_precision=PRECISION)
    tasks = tl.num_programs(1) // (3 * blocks)
    line = (tl.program_id(0) * tasks + task) * outputs + output
    at = partial + ((line * 9 + 3 * down) * inputs)[:, None] + channel[None, :]
    mask = wanted[:, None] & real[None, :]
    tl.store(at, left, mask=mask)
    tl.store(at + inputs, middle, mask=mask)
    tl.store(at + 2 * inputs, right, mask=mask)


@triton.jit
def _correlate_few(
    values,
    results,
    partial,
    pixels,
    length,
    height,
    width,
    v_height,
    v_width,
    inputs: tl.constexpr,
    outputs: tl.constexpr,
    v_task,
    v_image,
    v_channel,
    v_row,
    v_column,
    r_task,
    r_image,
    r_channel,
    r_row,
    r_column,
    STRIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The whole filters of a task: one product, of the patches, over a part of the pixels."""
    task = tl.program_id(1).to(tl.int64)
    each = tl.arange(0, CHANNELS)
    place, channel = each // inputs, each % inputs
    output = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    wanted = output < outputs
    total = tl.zeros((CHANNELS, BLOCK), dtype=tl.float32)
    first = tl.program_id(0) * length
    end = tl.minimum(first + length, pixels)
    for start in range(first, end, DEPTH):
        pixel = start + tl.arange(0, DEPTH)
        exists = pixel < end
        image, row, column = _place(pixel, height, width)
        at = results + task * r_task + image.to(tl.int64) * r_image + row * r_row + column * r_column
        result = tl.load(at[:, None] + (output * r_channel)[None, :], mask=exists[:, None] & wanted[None, :], other=0.0)
        at = values + task * v_task + image.to(tl.int64) * v_image
        seen = _seen(
            at, row, column, exists, v_height, v_width, inputs, channel, v_channel, v_row, v_column, place, STRIDE, False
        )
        total = tl.dot(seen, result, total, input_precision=PRECISION)
    line = (tl.program_id(0) * tl.num_programs(1) + task) * outputs + output
    at = partial + (line * (9 * inputs))[None, :] + each[:, None]
    tl.store(at, total, mask=(place < 9)[:, None] & wanted[None, :])
