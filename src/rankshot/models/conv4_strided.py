"""Conv4 with strides in place of pooling, as MAML's authors have it for Omniglot."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

from torch import Tensor, nn

from rankshot.preprocess import Preprocess
from rankshot.schema import Between

from .as_function import Statistics, by_task
from .double_backward import convolved
from .network import register

BLOCKS, STRIDE = 4, 2


class Conv4Strided(nn.Sequential):
    """Four blocks of 3x3 convolution with stride 2, batch norm and ReLU; an embedding is the mean over all places.

    (B, in_channels, H, W) -> (B, filters). It takes about a quarter of the work of Conv4, which halves the image after a
    convolution and not within it.

    >>> import torch
    >>> Conv4Strided(in_channels=1)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(self, in_channels: int = 1, filters: int = 64) -> None:
        widths = [in_channels, *[filters] * BLOCKS]
        layers = [layer for inputs, outputs in pairwise(widths) for layer in _block(inputs, outputs)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def as_function(
        self, weights: Mapping[str, Tensor], images: Tensor, known: Statistics | None = None, *, derived_twice: bool = True
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The embeddings by other weights than its own, and the statistics of every layer: see `as_function`."""
        channels = weights["0.weight"].shape[1]
        if images.shape[-3] != channels:
            raise ValueError(f"this network was made for images of {channels} channels, got {images.shape[-3]}")
        values = images
        all_statistics: list[tuple[Tensor, Tensor]] = []
        for at, layer in enumerate(self):
            if isinstance(layer, nn.Conv2d):
                values = convolved(values, weights[f"{at}.weight"], STRIDE)
            elif isinstance(layer, nn.BatchNorm2d):
                scale, shift = weights[f"{at}.weight"], weights[f"{at}.bias"]
                found = known[len(all_statistics)] if known else None
                values, statistics = by_task(values, scale, shift, layer.eps, found)
                all_statistics.append(statistics)
            else:
                values = layer(values)
        return values, all_statistics


def _block(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, stride=STRIDE, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU()


@register("conv4-strided")
def conv4_strided(preprocess: Preprocess, *, filters: Annotated[int, Between(1, 2048)] = 64) -> Conv4Strided:
    """conv4 with strides in place of pooling, and the mean over all places: what MAML's authors have for Omniglot.

    Args:
        filters: channels of each of its four blocks, and dimensions of an embedding.
    """
    return Conv4Strided(preprocess.channels, filters)
