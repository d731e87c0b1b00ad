"""ResNet-12, the residual network of the few-shot papers (Lee et al., 2019; Tian et al., 2020)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, get_args

import torch
from torch import Tensor, nn

from rankshot.limits import real, whole
from rankshot.preprocess import Preprocess
from rankshot.schema import Between

from .network import register

SMALLEST = 16  # pixels of a side, of which four halvings leave one
SLOPE = 0.1  # of the leaky ReLU
RAMP = 40_000  # batches in which DropBlock comes to its rate
Widths = Literal["64-160-320-640", "64-128-256-512"]
MOST_CHANNELS, MOST_DROPPED, MOST_A_SIDE = 2**14, 0.9, 21
Rate = Annotated[float, Between(0, MOST_DROPPED)]
Size = Annotated[int, Between(1, MOST_A_SIDE)]


class ResNet12(nn.Module):
    """ResNet-12 (Lee et al., 2019): four residual blocks of three convolutions, then the mean over all places.

    (B, in_channels, H, W) -> (B, last width), for images of at least 16x16 pixels. DropBlock (Ghiasi et al., 2018)
    follows the last two blocks, plain dropout the first two. Both grow to their rate over the first 40,000 batches, as in
    the papers.

    Args:
        in_channels: of the images.
        widths: channels of the four blocks, "64-160-320-640" or "64-128-256-512".
        drop_rate: share of places that DropBlock sets to zero in training, in the end.
        block_size: places of a side of its squares, in the last two blocks.

    Raises:
        ValueError: if a number is out of range, or there are no such widths; when called, if images are smaller than
            16x16 pixels.

    Examples:
        >>> import torch
        >>> from rankshot.models import ResNet12
        >>> network = ResNet12(widths="64-128-256-512").eval()
        >>> network(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 512])
        >>> sum(weight.numel() for weight in network.parameters())
        7996800
    """

    def __init__(
        self, in_channels: int = 3, widths: Widths = "64-160-320-640", drop_rate: Rate = 0.1, block_size: Size = 5
    ) -> None:
        super().__init__()
        whole("in_channels", in_channels, 1, MOST_CHANNELS)
        if widths not in get_args(Widths):
            raise ValueError(f"widths must be one of {', '.join(map(repr, get_args(Widths)))}, got {widths!r:.60}")
        real("drop_rate", drop_rate, 0, MOST_DROPPED)
        whole("block_size", block_size, 1, MOST_A_SIDE)
        sides = [in_channels, *map(int, widths.split("-"))]
        sizes = (1, 1, block_size, block_size)
        self.blocks = nn.Sequential(
            *(Residual(*pair, drop_rate, size) for pair, size in zip(pairwise(sides), sizes, strict=True))
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, D).

        Raises:
            ValueError: if images are too small, or not of four dimensions.
        """
        if images.dim() != 4 or min(images.shape[2:]) < SMALLEST:
            least = f"{SMALLEST}x{SMALLEST}"
            raise ValueError(f"ResNet-12 takes images (B, C, H, W) of at least {least} pixels, got {tuple(images.shape)}")
        places: Tensor = self.blocks(images.contiguous(memory_format=torch.channels_last))
        return places.mean((2, 3))


class Residual(nn.Module):
    """Three convolutions and a shortcut of one; then pooling, and places that are dropped in training."""

    def __init__(self, inputs: int, outputs: int, drop_rate: float, block_size: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *_convolution(inputs, outputs), nn.LeakyReLU(SLOPE, inplace=True),
            *_convolution(outputs, outputs), nn.LeakyReLU(SLOPE, inplace=True),
            *_convolution(outputs, outputs),
        )  # fmt: skip
        self.shortcut = nn.Sequential(*_convolution(inputs, outputs, kernel=1))
        self.end = nn.Sequential(nn.LeakyReLU(SLOPE, inplace=True), nn.MaxPool2d(2), DropBlock(drop_rate, block_size))

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.end(self.convolutions(values) + self.shortcut(values))
        return result


def _convolution(inputs: int, outputs: int, kernel: int = 3) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)


class DropBlock(nn.Module):
    """Sets squares of `size` places to zero in training, so that about `rate` of all places are; what is left is scaled up.

    With size 1 it is dropout. The rate grows from 0 over the first `RAMP` batches, which it counts.
    """

    batches: Tensor

    def __init__(self, rate: float, size: int) -> None:
        super().__init__()
        self.rate, self.size = rate, size
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return values
        self.batches += 1
        rate = self.rate * (self.batches / RAMP).clamp(max=1.0)  # a tensor: in a CUDA graph a number would stand still
        height, width = values.shape[2:]
        size = min(self.size, height, width)
        corners = height - size + 1, width - size + 1  # where a whole square fits
        chance = rate * (height * width) / (size * size * corners[0] * corners[1])
        middles = (torch.rand(*values.shape[:2], *corners, device=values.device) < chance).to(values.dtype)
        padded = nn.functional.pad(middles, [size - 1] * 4)
        kept = 1 - nn.functional.max_pool2d(padded, size, stride=1)
        return values * kept * (kept.numel() / kept.sum().clamp(min=1.0))


@register("resnet12", preprocess=Preprocess(3, 84, 84))
def resnet12(
    preprocess: Preprocess, *, widths: Widths = "64-160-320-640", drop_rate: Rate = 0.1, block_size: Size = 5
) -> ResNet12:
    """ResNet-12 (Lee et al., 2019): four residual blocks with DropBlock, as the few-shot papers have it.

    Args:
        widths: channels of its four blocks: 64-160-320-640 (12.4 million weights) or 64-128-256-512 (8 million).
        drop_rate: share of places that DropBlock sets to zero in training, after its first 40,000 batches.
        block_size: places of a side of its squares, in the last two blocks.
    """
    return ResNet12(preprocess.channels, widths, drop_rate, block_size)
