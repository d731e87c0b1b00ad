"""Conv4, the embedding network of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

import torch
from torch import Tensor, nn

from rankshot.kernels import are_memory, kernels_work
from rankshot.preprocess import Preprocess
from rankshot.schema import Between

from .as_function import Statistics
from .conv4_as_function import conv4_as_function
from .network import register

SMALLEST = 16  # pixels of a side, of which four halvings leave one


class Conv4(nn.Sequential):
    """Conv4, the embedding network of the paper: four blocks of 3x3 convolution, batch norm, ReLU and 2x2 max-pool.

    (B, in_channels, H, W) -> (B, filters * (H // 16) * (W // 16)): with 64 filters 64 dimensions at 28x28, 1024 at 64x64
    and 1600 at 84x84. The ReLU comes after the pooling here: the values and gradients are the same, and it has a quarter
    of the work.

    Args:
        in_channels: of the images.
        filters: channels of each block.

    Raises:
        ValueError: if a number is below 1; when called, if images are smaller than 16x16 pixels.

    Examples:
        >>> import torch
        >>> from rankshot.models import Conv4
        >>> network = Conv4(in_channels=3)
        >>> network(torch.zeros(2, 3, 84, 84)).shape  # 64 filters at 5 x 5 places
        torch.Size([2, 1600])
        >>> sum(weight.numel() for weight in network.parameters())
        112832
    """

    def __init__(self, in_channels: int = 1, filters: int = 64) -> None:
        if in_channels < 1 or filters < 1:
            raise ValueError(f"in_channels and filters must be 1 or more, got {in_channels} and {filters}")
        widths = [in_channels, filters, filters, filters, filters]
        super().__init__(*(Block(*pair) for pair in pairwise(widths)), nn.Flatten())
        self.description = {"name": "conv4", "in_channels": in_channels, "filters": filters}
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, D).

        Raises:
            ValueError: if images are smaller than 16x16 pixels, or not of four dimensions.
        """
        if images.dim() != 4 or min(images.shape[2:]) < SMALLEST:
            least = f"{SMALLEST}x{SMALLEST}"
            raise ValueError(f"Conv4 takes images (B, C, H, W) of at least {least} pixels, got {tuple(images.shape)}")
        values = images.contiguous(memory_format=torch.channels_last)
        for part in self:
            values = part(values)
        return values

    def as_function(
        self, weights: Mapping[str, Tensor], images: Tensor, known: Statistics | None = None, *, derived_twice: bool = True
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The embeddings by other weights than its own, and the statistics of every layer: see `conv4_as_function`."""
        channels, (height, width) = weights["0.0.weight"].shape[1], images.shape[-2:]
        if images.shape[-3] != channels:
            raise ValueError(f"this network was made for images of {channels} channels, got {images.shape[-3]}")
        if min(height, width) < SMALLEST:
            raise ValueError(f"images must be of at least {SMALLEST}x{SMALLEST} pixels, got {height}x{width}")
        eps = [norm.eps for norm in self.modules() if isinstance(norm, nn.BatchNorm2d)]
        return conv4_as_function(weights, images, eps, known, derived_twice=derived_twice)


class Block(nn.Sequential):
    """Convolution (batch norm takes the place of its bias), batch norm, max-pool, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), nn.MaxPool2d(2), nn.ReLU(inplace=True))

    def forward(self, values: Tensor) -> Tensor:
        convolution, norm = self[0], self[1]
        if self._may_be_fused(values) and isinstance(convolution, nn.Conv2d) and type(norm) is nn.BatchNorm2d:
            from .fused import fits, norm_pool_relu
            from .fused_first_block import first_block, is_first

            if fits(norm) and is_first(values, convolution):
                return first_block(values, convolution, norm)
            if fits(norm):
                return norm_pool_relu(convolution(values), norm)
        for part in self:
            values = part(values)
        return values

    def _may_be_fused(self, values: Tensor) -> bool:
        """Not if a hook reads the values between the layers, or if a tensor is a stand-in that no kernel can read."""
        if values.dtype == torch.float64 or not kernels_work(values.device):
            return False
        if any(layer._forward_hooks or layer._forward_pre_hooks for layer in self):
            return False
        return are_memory(values, *self.parameters(), *self.buffers())


@register("conv4", own_kernels=True)
def conv4(preprocess: Preprocess, *, filters: Annotated[int, Between(1, 2048)] = 64) -> Conv4:
    """The embedding network of the paper: four blocks of convolution, batch norm, pooling and ReLU.

    Args:
        filters: channels of each of its four blocks.
    """
    return Conv4(preprocess.channels, filters)
