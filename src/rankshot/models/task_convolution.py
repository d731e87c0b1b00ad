"""Convolutions of several tasks at once on a GPU, each with its own filters, for gradients of gradients.

As in `double_backward`, but with kernels: `torch.func.vmap` turns convolutions of torch into grouped ones, which are slow.
"""

from __future__ import annotations

from torch import Tensor

from .any_order import of_any_order
from .task_convolution_kernels import convolve, correlate
from .task_functions import TaskFunction, of_one


def convolved(values: Tensor, filters: Tensor, stride: int = 1) -> Tensor:
    """(B, C, H, W), (F, C, 3, 3) -> (B, F, H, W); with a stride of 2 half of the height and width, rounded up."""
    return _convolved(of_one(values), of_one(filters), stride).squeeze(0)


def _convolve(values: Tensor, filters: Tensor, stride: int) -> Tensor:
    return convolve(values, filters, stride)


def _by_values(outputs: Tensor, filters: Tensor, stride: int, height: int, width: int) -> Tensor:
    return convolve(outputs, filters, stride, back_to=(height, width))


_convolved = of_any_order(TaskFunction, _convolve, _by_values, correlate)
