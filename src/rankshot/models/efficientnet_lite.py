"""EfficientNet-Lite (Tan and Le, 2019, without squeeze-and-excitation), for photographs on small machines."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rankshot.limits import real, whole
from rankshot.preprocess import Preprocess

from .network import register

SMALLEST = 32  # pixels of a side: five halvings leave one
STEM, HEAD = 32, 1280  # channels, of every size of the network
MOST_CHANNELS = 2**14  # of images
FACTORS = 0.1, 10  # of width and depth; those that are known are from 1 to 1.2
# Of each stage: blocks, kernel, stride, how many times as wide a block is inside, channels. At width 1 and depth 1.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# How the ImageNet weights want their pictures: values from 0 to 255, less 127, divided by 128.
MEAN, DEVIATION = (127 / 255,) * 3, (128 / 255,) * 3


def preprocess_at(size: int) -> Preprocess:
    return Preprocess(3, size, size, fit="crop", mean=MEAN, deviation=DEVIATION)


class EfficientNetLite(nn.Module):
    """EfficientNet-Lite: seven stages of inverted residual blocks, then the mean over all places; 1,280 dimensions.

    (B, in_channels, H, W) -> (B, 1280), for images of at least 32x32 pixels. `from_pretrained("efficientnet-lite0")` has
    ImageNet weights.

    Args:
        in_channels: of the images.
        width: factor of the channels of each stage.
        depth: factor of the blocks of each stage.

    Raises:
        ValueError: if a number is out of range; when called, if images are smaller than 32x32 pixels.

    Examples:
        >>> import torch
        >>> from rankshot.models import EfficientNetLite
        >>> network = EfficientNetLite()
        >>> network(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 1280])
        >>> sum(weight.numel() for weight in network.parameters())
        3371008
    """

    def __init__(self, in_channels: int = 3, width: float = 1.0, depth: float = 1.0) -> None:
        super().__init__()
        whole("in_channels", in_channels, 1, MOST_CHANNELS)
        real("width", width, *FACTORS)
        real("depth", depth, *FACTORS)
        self.stem = _layer(in_channels, STEM, kernel=3, stride=2)
        blocks, inputs = [], STEM
        for stage, (repeats, kernel, stride, expansion, channels) in enumerate(STAGES):
            outputs = _rounded(channels * width)
            grows = 0 < stage < len(STAGES) - 1  # the first stage and the last are as deep in every size
            for repeat in range(math.ceil(repeats * depth) if grows else repeats):
                blocks.append(InvertedResidual(inputs, outputs, kernel, stride if repeat == 0 else 1, expansion))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = _layer(inputs, HEAD, kernel=1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, 1280).

        Raises:
            ValueError: if images are smaller than 32x32 pixels, or not of four dimensions.
        """
        if images.dim() != 4 or min(images.shape[2:]) < SMALLEST:
            least = f"images (B, C, H, W) of at least {SMALLEST}x{SMALLEST} pixels"
            raise ValueError(f"EfficientNet-Lite takes {least}, got {tuple(images.shape)}")
        weights = next(self.parameters())  # of the first layer
        is_last = weights.is_contiguous(memory_format=torch.channels_last)  # `Embedder` may have changed it
        values = images.contiguous(memory_format=torch.channels_last if is_last else torch.contiguous_format)
        places: Tensor = self.head(self.blocks(self.stem(values)))
        return places.mean((2, 3))


class InvertedResidual(nn.Module):
    """Wider, then each channel by itself, then narrow again; added to what came in, where the sizes are the same."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = inputs * expansion
        self.expand = _layer(inputs, inside, kernel=1) if expansion != 1 else nn.Identity()
        self.depthwise = _layer(inside, inside, kernel, stride, groups=inside)
        self.project = _layer(inside, outputs, kernel=1)[:2]  # no ReLU at its end
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.project(self.depthwise(self.expand(values)))
        return values + result if self.is_residual else result


class SameConv2d(nn.Conv2d):
    """As TensorFlow pads: as little as gives ceil(size / stride), and what is odd of it to the right and below."""

    def forward(self, values: Tensor) -> Tensor:
        vertical, horizontal = (
            max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            for size, stride, kernel in zip(values.shape[2:], self.stride, self.kernel_size, strict=True)
        )
        if vertical or horizontal:
            left, top = horizontal // 2, vertical // 2
            values = nn.functional.pad(values, (left, horizontal - left, top, vertical - top))
        return super().forward(values)


def _layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    convolution = SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01), nn.ReLU6(inplace=True))


def _rounded(channels: float, divisor: int = 8) -> int:
    """To a multiple of eight, and not down by more than a tenth."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * channels else nearest


@register("efficientnet-lite0", preprocess=preprocess_at(224))
def efficientnet_lite0(preprocess: Preprocess) -> EfficientNetLite:
    """EfficientNet-Lite0 (Tan and Le, 2019): 3.4 million weights, for photographs of 224 pixels."""
    return EfficientNetLite(preprocess.channels)


@register("efficientnet-lite1", preprocess=preprocess_at(240))
def efficientnet_lite1(preprocess: Preprocess) -> EfficientNetLite:
    """EfficientNet-Lite1: 4.1 million weights, for photographs of 240 pixels."""
    return EfficientNetLite(preprocess.channels, depth=1.1)


@register("efficientnet-lite2", preprocess=preprocess_at(288))
def efficientnet_lite2(preprocess: Preprocess) -> EfficientNetLite:
    """EfficientNet-Lite2: 4.8 million weights, for photographs of 288 pixels.

    ImageNet's classes were learned at 260. Classes that it has not seen it tells apart better at 288 (docs/benchmarks.md).
    """
    return EfficientNetLite(preprocess.channels, width=1.1, depth=1.2)
