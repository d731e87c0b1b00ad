"""Layers for gradients of gradients: their derivatives written out, as the few operations that they are.

What torch derives by itself is the same, but takes up to 2.6 times as long on a GPU (`benchmarks/adaptation.py`).
Under `torch.func.vmap` the channels of all tasks lie beside one another all the way, so that nothing is rearranged.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from .any_order import of_any_order

PADDING = 1  # of filters of 3 x 3


def convolved(values: Tensor, filters: Tensor, stride: int = 1) -> Tensor:
    """(B, C, H, W), (F, C, 3, 3) -> (B, F, H, W); with a stride of 2 half of the height and width, rounded up."""
    return _convolved(values, filters, stride)


def pooled(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, C, H, W) -> the largest of every 2 x 2 (B, C, H // 2, W // 2); mean and variance of each channel (C,), (C,)."""
    largest, _, mean, variance = _run(_Pooled, values)
    return largest, mean, variance


def _run(function: type[Function], *inputs: Any) -> Any:
    return function.apply(*inputs)  # type: ignore[no-untyped-call]


def _convolve(values: Tensor, filters: Tensor, stride: int) -> Tensor:
    return nn.functional.conv2d(values, filters, stride=stride, padding=PADDING)


def _by_values(outputs: Tensor, filters: Tensor, stride: int, height: int, width: int) -> Tensor:
    least = [stride * (size - 1) + 3 - 2 * PADDING for size in outputs.shape[-2:]]  # several sizes have as many outputs
    more = height - least[0], width - least[1]
    return nn.functional.conv_transpose2d(outputs, filters, stride=stride, padding=PADDING, output_padding=more)


def _by_filters(values: Tensor, outputs: Tensor, stride: int) -> Tensor:
    filters = outputs.new_empty(outputs.shape[1], values.shape[1], 3, 3)
    geometry = [stride, stride], [PADDING, PADDING], [1, 1], False, [0, 0], 1
    gradients = torch.ops.aten.convolution_backward(outputs, values, filters, None, *geometry, [False, True, False])
    return gradients[1]  # type: ignore[no-any-return]


class _Mapped(Function):
    """`torch.func.vmap` maps the operations inside, each by its own rule."""

    generate_vmap_rule = True


_convolved = of_any_order(_Mapped, _convolve, _by_values, _by_filters)


class _Pooled(Function):
    """values -> the largest of every 2 x 2, where they lie, mean and variance of each channel."""

    @staticmethod
    def forward(values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        largest, indices = nn.functional.max_pool2d(values, 2, return_indices=True)
        variance, mean = torch.var_mean(values, (0, 2, 3), correction=0)
        return largest, indices, mean, variance

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor], output: tuple[Tensor, ...]) -> None:
        _, indices, mean, _ = output
        context.mark_non_differentiable(indices)
        context.save_for_backward(*inputs, indices, mean)

    @staticmethod
    def backward(context: Any, largest: Tensor, _: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        values, indices, centre = context.saved_tensors
        count = values.numel() // values.shape[1]
        slope = variance * (2 / count)
        start = mean / count - slope * centre
        return _run(_Placed, values, slope, start, largest, indices)  # type: ignore[no-any-return]

    @staticmethod
    def vmap(info: Any, dimensions: Any, *inputs: Tensor) -> Any:
        return _side_by_side(_Pooled, info, dimensions, *inputs)


class _Placed(Function):
    """values, a line for each channel, and one more for every 2 x 2 -> the values on the line, and these added in place."""

    @staticmethod
    def forward(values: Tensor, slope: Tensor, start: Tensor, more: Tensor, indices: Tensor) -> Tensor:
        line = torch.addcmul(start[:, None, None], slope[:, None, None], values.contiguous())
        line.flatten(2).scatter_add_(2, indices.flatten(2), more.flatten(2))  # into the line: flat, it is no copy
        return line

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        values, slope, _, _, indices = inputs
        context.save_for_backward(values, slope, indices)

    @staticmethod
    def backward(context: Any, line: Tensor) -> tuple[Tensor | None, ...]:
        values, slope, indices = context.saved_tensors
        every = (0, 2, 3)
        return line * slope[:, None, None], (line * values).sum(every), line.sum(every), _run(_Picked, line, indices), None

    @staticmethod
    def vmap(info: Any, dimensions: Any, *inputs: Tensor) -> Any:
        return _side_by_side(_Placed, info, dimensions, *inputs)


class _Picked(Function):
    """values -> those at the places."""

    @staticmethod
    def forward(values: Tensor, indices: Tensor) -> Tensor:
        return values.flatten(2).gather(2, indices.flatten(2)).view(indices.shape)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        context.save_for_backward(*inputs)

    @staticmethod
    def backward(context: Any, picked: Tensor) -> tuple[Tensor, None]:
        values, indices = context.saved_tensors
        flat = values.new_zeros(values.shape[1])
        return _run(_Placed, values, flat, flat, picked, indices), None

    @staticmethod
    def vmap(info: Any, dimensions: Any, *inputs: Tensor) -> Any:
        return _side_by_side(_Picked, info, dimensions, *inputs)


def _side_by_side(function: type[Function], info: Any, dimensions: Any, *inputs: Tensor) -> Any:
    """`vmap` of what treats every channel alike: as if the channels of all tasks were those of one."""
    tasks = info.batch_size

    def together(tensor: Tensor, dimension: int | None) -> Tensor:
        tensor = tensor.expand(tasks, *tensor.shape) if dimension is None else tensor.movedim(dimension, 0)
        return tensor.flatten(0, 1) if tensor.ndim == 2 else tensor.movedim(0, 1).flatten(1, 2)

    def apart(tensor: Tensor) -> tuple[Tensor, int]:
        dimension = 0 if tensor.ndim == 1 else 1
        return tensor.unflatten(dimension, (tasks, -1)), dimension  # type: ignore[no-untyped-call]

    outputs = _run(function, *map(together, inputs, dimensions))
    return tuple(zip(*map(apart, outputs), strict=True)) if isinstance(outputs, tuple) else apart(outputs)
