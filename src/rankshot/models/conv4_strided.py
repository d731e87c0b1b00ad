"""Conv4 with strides in place of pooling: MAML's authors' network for Omniglot, except for the padding at the edges."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

from torch import Tensor, nn

from rankshot.preprocess import Preprocess
from rankshot.schema import Between

from .as_function import Statistics, by_task
from .conv4_as_function import has_kernels, kernel_block
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
        if in_channels < 1 or filters < 1:
            raise ValueError(f"in_channels and filters must be 1 or more, got {in_channels} and {filters}")
        widths = [in_channels, *[filters] * BLOCKS]
        super().__init__(*(_block(inputs, outputs) for inputs, outputs in pairwise(widths)))
        self.description = {"name": "conv4-strided", "in_channels": in_channels, "filters": filters}

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = super().forward(images)  # type: ignore[no-untyped-call]
        return maps.mean((-2, -1))

    def as_function(
        self, weights: Mapping[str, Tensor], images: Tensor, known: Statistics | None = None, *, derived_twice: bool = True
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The embeddings by other weights than its own, and the statistics of every layer: see `as_function`."""
        channels = weights["0.0.weight"].shape[1]
        if images.shape[-3] != channels:
            raise ValueError(f"this network was made for images of {channels} channels, got {images.shape[-3]}")
        values, all_statistics = images, []
        for index in range(BLOCKS):
            filters, scale, shift = (weights[f"{index}.{name}"] for name in ("0.weight", "1.weight", "1.bias"))
            eps: float = self[index][1].eps  # type: ignore[index]
            values, statistics = block(values, filters, scale, shift, eps, known[index] if known else None)
            all_statistics.append(statistics)
        return values.mean((-2, -1)), all_statistics


def block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Convolution, batch norm and ReLU; and the mean and variance of the convolution's results, or those that are known.

    With kernels, where they work, the mean and the variance are constants: nothing can be derived by them.
    """
    if known is None and has_kernels(values, filters, least=1):
        return kernel_block(values, filters, scale, shift, eps, STRIDE, pool=1)
    return plain_block(values, filters, scale, shift, eps, known)


def plain_block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same by torch."""
    normal, statistics = by_task(convolved(values, filters, STRIDE), scale, shift, eps, known)
    return nn.functional.relu(normal), statistics


def _block(inputs: int, outputs: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, stride=STRIDE, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


@register("conv4-strided")
def conv4_strided(preprocess: Preprocess, *, filters: Annotated[int, Between(1, 2048)] = 64) -> Conv4Strided:
    """conv4 with strides in place of pooling, and the mean over all places: what MAML's authors have for Omniglot.

    Args:
        filters: channels of each of its four blocks, and dimensions of an embedding.
    """
    return Conv4Strided(preprocess.channels, filters)
