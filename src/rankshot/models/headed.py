"""A linear layer on top of an embedding network: a head that learns, perhaps alone."""

from __future__ import annotations

from torch import Tensor, nn


class Headed(nn.Module):
    """An embedding network, and a linear map of its embeddings to so many dimensions.

    A network that is frozen (`--frozen all`) learns nothing but its head, which takes little time and few images.
    """

    def __init__(self, network: nn.Module, dimensions: int, head: int) -> None:
        super().__init__()
        self.network = network
        self.head = nn.Linear(dimensions, head, bias=False)  # cosines know no origin but zero

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, head)."""
        embeddings: Tensor = self.head(self.network(images))
        return embeddings


def head_of(network: nn.Module) -> nn.Linear | None:
    """The head within a network that others are built around, if it has one."""
    if isinstance(network, Headed):
        return network.head
    inner = getattr(network, "wrapped_network", None)
    return head_of(inner) if isinstance(inner, nn.Module) else None
