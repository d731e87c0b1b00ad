"""Conv4 with what TensorFlow's layers do by default, as in the authors' code: to find out what that is worth."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor, nn

from rankshot.preprocess import Preprocess
from rankshot.schema import Between

from .conv4 import Conv4
from .network import register


class Conv4TensorFlow(Conv4):
    """Conv4 that differs from PyTorch's defaults in how it starts, normalises and takes pixels.

    >>> import torch
    >>> Conv4TensorFlow(in_channels=3)(torch.zeros(2, 3, 84, 84)).shape
    torch.Size([2, 1600])
    """

    def __init__(
        self,
        in_channels: int = 1,
        *,
        norm_scale: bool = False,
        norm_epsilon: float = 1e-3,
        first_weights: str = "xavier",
        largest_pixel: float = 255.0,
    ) -> None:
        super().__init__(in_channels)
        self.largest_pixel = largest_pixel
        for part in self.modules():
            if isinstance(part, nn.Conv2d) and first_weights == "xavier":
                nn.init.xavier_uniform_(part.weight)
            elif isinstance(part, nn.BatchNorm2d):
                part.eps = norm_epsilon
                part.weight.requires_grad_(norm_scale)  # it stays 1

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images * self.largest_pixel)


@register("conv4-tensorflow", own_kernels=True)
def conv4_tensorflow(
    preprocess: Preprocess,
    *,
    norm_scale: bool = False,
    norm_epsilon: Annotated[float, Between(1e-12, 1)] = 1e-3,
    first_weights: Literal["xavier", "torch"] = "xavier",
    largest_pixel: Annotated[float, Between(1e-3, 1e6)] = 255.0,
) -> Conv4TensorFlow:
    """conv4 with the defaults of TensorFlow, as in the code of the paper's authors (docs/paper.md).

    Args:
        norm_scale: let batch norm learn a scale beside its offset.
        norm_epsilon: what batch norm adds to a variance.
        first_weights: xavier, or those that torch's layers start with.
        largest_pixel: the network sees pixels from 0 to this.
    """
    return Conv4TensorFlow(
        preprocess.channels,
        norm_scale=norm_scale,
        norm_epsilon=norm_epsilon,
        first_weights=first_weights,
        largest_pixel=largest_pixel,
    )
