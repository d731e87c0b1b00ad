"""The mean and deviation of a network's pictures, taken off before it sees them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rankshot.preprocess import Preprocess


def normalised(network: nn.Module, preprocess: Preprocess) -> nn.Module:
    """The network itself, where there is nothing to take off."""
    if not preprocess.mean and not preprocess.deviation:
        return network
    return Normalised(network, preprocess.mean, preprocess.deviation)


class Normalised(nn.Module):
    """A network whose images come from 0 to 1, and are normalised channel by channel here.

    So whoever feeds it, a training loop, a gallery or an exported file, has one kind of image to give.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.network = network
        channels = max(len(mean), len(deviation))
        # Not among the weights: they are told by `preprocess`, and a file of weights may come from elsewhere.
        self.register_buffer("mean", torch.tensor(mean or [0.0] * channels).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation or [1.0] * channels).view(-1, 1, 1), persistent=False)

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        mean, deviation = self.mean.to(images.dtype), self.deviation.to(images.dtype)
        embeddings: Tensor = self.network((images - mean) / deviation)
        return embeddings
