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
    return _Forth.run(of_one(values), of_one(filters)).squeeze(0)  # type: ignore[no-any-return]


class _Bilinear(TaskFunction):
    """A convolution is linear in its values and in its filters. So are its two gradients in what they are made of, and
    their gradients are the same three operations again: those of any order are."""

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        context.save_for_backward(*inputs)


class _Forth(_Bilinear):
    """values (T, B, C, H, W), filters (T, F, C, 3, 3) -> results (T, B, F, H, W)."""

    @staticmethod
    def forward(values: Tensor, filters: Tensor) -> Tensor:
        return convolve(values, filters)

    @staticmethod
    def backward(context: Any, results: Tensor) -> Any:
        values, filters = context.saved_tensors
        return _asked_for(context, lambda: _Back.run(results, filters), lambda: _Across.run(values, results))


class _Back(_Bilinear):
    """results, filters -> values."""

    @staticmethod
    def forward(results: Tensor, filters: Tensor) -> Tensor:
        return convolve(results, filters, back=True)

    @staticmethod
    def backward(context: Any, values: Tensor) -> Any:
        results, filters = context.saved_tensors
        return _asked_for(context, lambda: _Forth.run(values, filters), lambda: _Across.run(values, results))


class _Across(_Bilinear):
    """values, results -> filters."""

    @staticmethod
    def forward(values: Tensor, results: Tensor) -> Tensor:
        return correlate(values, results)

    @staticmethod
    def backward(context: Any, filters: Tensor) -> Any:
        values, results = context.saved_tensors
        return _asked_for(context, lambda: _Back.run(results, filters), lambda: _Forth.run(values, filters))


def _asked_for(context: Any, *gradients: Callable[[], Tensor]) -> tuple[Tensor | None, ...]:
    """Nobody asks for those of the images."""
    return tuple(gradient() if asked else None for gradient, asked in zip(gradients, context.needs_input_grad, strict=True))
