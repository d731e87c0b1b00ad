"""Convolutions of several tasks at once on a GPU, each with its own filters, for gradients of gradients.

As in `double_backward`, but with kernels. Of torch's own `torch.func.vmap` makes convolutions in groups, which are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .task_convolution_kernels import convolve, correlate
from .task_functions import TaskFunction, of_one


def convolved(values: Tensor, filters: Tensor) -> Tensor:
    """(B, C, H, W), (F, C, 3, 3) -> (B, F, H, W)."""
    return _Convolution.run(of_one(values), of_one(filters)).squeeze(0)  # type: ignore[no-any-return]


class _Bilinear(TaskFunction):
    """A convolution is linear in its values and in its filters. So are its two gradients in what they are made of, and
    their gradients are the same three operations again: those of any order are."""

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        context.save_for_backward(*inputs)


class _Convolution(_Bilinear):
    """values (T, B, C, H, W), filters (T, F, C, 3, 3) -> outputs (T, B, F, H, W)."""

    @staticmethod
    def forward(values: Tensor, filters: Tensor) -> Tensor:
        return convolve(values, filters)

    @staticmethod
    def backward(context: Any, outputs: Tensor) -> Any:
        values, filters = context.saved_tensors
        return _asked_for(context, lambda: _ByValues.run(outputs, filters), lambda: _ByFilters.run(values, outputs))


class _ByValues(_Bilinear):
    """The gradient by the values: outputs, filters -> values."""

    @staticmethod
    def forward(outputs: Tensor, filters: Tensor) -> Tensor:
        return convolve(outputs, filters, back=True)

    @staticmethod
    def backward(context: Any, values: Tensor) -> Any:
        outputs, filters = context.saved_tensors
        return _asked_for(context, lambda: _Convolution.run(values, filters), lambda: _ByFilters.run(values, outputs))


class _ByFilters(_Bilinear):
    """The gradient by the filters: values, outputs -> filters."""

    @staticmethod
    def forward(values: Tensor, outputs: Tensor) -> Tensor:
        return correlate(values, outputs)

    @staticmethod
    def backward(context: Any, filters: Tensor) -> Any:
        values, outputs = context.saved_tensors
        return _asked_for(context, lambda: _ByValues.run(outputs, filters), lambda: _Convolution.run(values, filters))


def _asked_for(context: Any, *gradients: Callable[[], Tensor]) -> tuple[Tensor | None, ...]:
    """Nobody asks for those of the images."""
    return tuple(gradient() if asked else None for gradient, asked in zip(gradients, context.needs_input_grad, strict=True))
