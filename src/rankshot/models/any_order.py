"""A convolution whose gradients have gradients, of any order, whatever computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function


def of_any_order(
    base: type[Function],
    convolve: Callable[[Tensor, Tensor, int], Tensor],
    by_values: Callable[[Tensor, Tensor, int, int, int], Tensor],
    by_filters: Callable[[Tensor, Tensor, int], Tensor],
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Values, filters and a stride -> outputs, with derivatives.

    A convolution is linear in its values and in its filters. So are its two gradients in what they are made of, and their
    gradients are the same three operations again: those of any order are.

    base         says what `torch.func.vmap` makes of an operation
    convolve     values, filters, stride -> outputs
    by_values    the gradient: outputs, filters, stride, height and width of the values -> values
    by_filters   the gradient: values, outputs, stride -> filters
    """

    class Bilinear(base):  # type: ignore[misc, valid-type]
        @staticmethod
        def setup_context(context: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            one, other, context.stride, *_ = inputs
            context.save_for_backward(one, other)

    class Convolution(Bilinear):
        forward = staticmethod(convolve)

        @staticmethod
        def backward(context: Any, outputs: Tensor) -> Any:
            values, filters = context.saved_tensors
            return _asked_for(
                context,
                lambda: ByValues.apply(outputs, filters, context.stride, *values.shape[-2:]),
                lambda: ByFilters.apply(values, outputs, context.stride),
            )

    class ByValues(Bilinear):
        forward = staticmethod(by_values)

        @staticmethod
        def backward(context: Any, values: Tensor) -> Any:
            outputs, filters = context.saved_tensors
            return _asked_for(
                context,
                lambda: Convolution.apply(values, filters, context.stride),
                lambda: ByFilters.apply(values, outputs, context.stride),
            )

    class ByFilters(Bilinear):
        forward = staticmethod(by_filters)

        @staticmethod
        def backward(context: Any, filters: Tensor) -> Any:
            values, outputs = context.saved_tensors
            return _asked_for(
                context,
                lambda: ByValues.apply(outputs, filters, context.stride, *values.shape[-2:]),
                lambda: Convolution.apply(values, filters, context.stride),
            )

    return Convolution.apply  # type: ignore[no-any-return]


def _asked_for(context: Any, *gradients: Callable[[], Tensor]) -> tuple[Tensor | None, ...]:
    """The gradients that are needed, and None for all else: that by the images, the largest, is usually not needed, and the
    arguments after the two tensors are numbers."""
    asked_for = context.needs_input_grad
    wanted = (gradient() if asked else None for gradient, asked in zip(gradients, asked_for, strict=False))
    return *wanted, *[None] * (len(asked_for) - len(gradients))
