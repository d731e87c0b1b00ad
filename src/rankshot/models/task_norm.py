"""Batch norm, max-pool and ReLU of several tasks at once on a GPU, for gradients of gradients.

Each task is normalised by its own statistics. The first and the second derivatives are written out, with kernels; those of
them are left to torch, which derives them from the layers one by one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap

from .task_functions import TaskFunction, of_one
from .task_norm_kernels import backward, double_backward, forward


def norm_pool_relu(
    values: Tensor, scale: Tensor, shift: Tensor, eps: float, pool: int = 2
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """(B, C, H, W), (C,), (C,) -> (B, C, H // pool, W // pool); and the mean and variance of each channel, as constants.

    pool   a side of the windows of which the largest value is taken: 2, or 1 for none
    """
    outputs = _NormPoolReLU.run(of_one(values), of_one(scale), of_one(shift), eps, pool)
    passed, mean, variance = (each.squeeze(0) for each in outputs)
    return passed, (mean, variance)


class _NormPoolReLU(TaskFunction):
    """values (T, B, C, H, W), scale and shift (T, C) -> outputs, and the mean and variance of each channel (T, C)."""

    @staticmethod
    def forward(values: Tensor, scale: Tensor, shift: Tensor, eps: float, pool: int) -> tuple[Tensor, Tensor, Tensor]:
        return forward(values, scale, shift, eps, pool)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        values, scale, shift, *context.settings = inputs
        _, mean, variance = output
        context.mark_non_differentiable(mean, variance)
        context.set_materialize_grads(False)
        context.save_for_backward(values, scale, shift, mean, variance)

    @staticmethod
    def backward(context: Any, grad_outputs: Tensor, *_: Any) -> Any:
        return *_Gradients.run(*context.saved_tensors, grad_outputs, *context.settings), None, None


class _Gradients(TaskFunction):
    """The gradients by values, scale and shift, from the one by the outputs."""

    @staticmethod
    def forward(
        values: Tensor,
        scale: Tensor,
        shift: Tensor,
        mean: Tensor,
        variance: Tensor,
        grad_outputs: Tensor,
        eps: float,
        pool: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        return backward(values, scale, shift, mean, variance, grad_outputs, eps, pool)

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        tensors, context.settings = inputs[:-2], inputs[-2:]
        _, grad_scale, grad_shift = output
        context.save_for_backward(*tensors, grad_scale, grad_shift)

    @staticmethod
    def backward(
        context: Any, grad_grad_values: Tensor, grad_grad_scale: Tensor, grad_grad_shift: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Of mean and variance there is none: what they do is in that by the values, which they come from."""
        values, scale, shift, mean, variance, grad_outputs, grad_scale, grad_shift = context.saved_tensors
        above = grad_grad_values, grad_grad_scale, grad_grad_shift
        eps, pool = context.settings
        if torch.is_grad_enabled():
            second_values, second_scale, second_shift, second_outputs = _derived(
                values, scale, shift, grad_outputs, eps, pool, above
            )
            return second_values, second_scale, second_shift, None, None, second_outputs, None, None
        second_values, second_scale, second_outputs = double_backward(
            values, scale, shift, mean, variance, grad_outputs, grad_scale, grad_shift, *above, eps, pool
        )
        return second_values, second_scale, None, None, None, second_outputs, None, None


def _derived(
    values: Tensor, scale: Tensor, shift: Tensor, grad_outputs: Tensor, eps: float, pool: int, above: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The same as torch derives it, so that it has derivatives again."""

    def layers(values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        variance, mean = torch.var_mean(values, (1, 3, 4), correction=0, keepdim=True)
        scale, shift = scale[:, None, :, None, None], shift[:, None, :, None, None]
        normal = (values - mean) * (variance + eps).rsqrt() * scale + shift
        return vmap(lambda each: nn.functional.relu(nn.functional.max_pool2d(each, pool)))(normal)

    def gradients(values: Tensor, scale: Tensor, shift: Tensor, grad_outputs: Tensor) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = vjp(layers, values, scale, shift)[1](grad_outputs)
        return found

    derived: tuple[Tensor, ...] = vjp(gradients, values, scale, shift, grad_outputs)[1](above)
    return derived
