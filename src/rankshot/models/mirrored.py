"""An image and its mirror image, embedded as one."""

from __future__ import annotations

from torch import Tensor, nn


class Mirrored(nn.Module):
    """An embedding network that answers with the mean of what it makes of an image and of its mirror image.

    Its embedding is the same for both, then, which photographs deserve and letters do not. While it learns it sees one of
    the two: random flips (`augment`) show it both in the end, at half of the cost.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        if hasattr(network, "description"):
            self.description = {**network.description, "mirror": True}  # type: ignore[dict-item]

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, D)."""
        embeddings: Tensor = self.network(images)
        if self.training:
            return embeddings
        # One after the other, not as one batch: each may be normalised by its own statistics.
        other: Tensor = self.network(images.flip(-1))
        return (embeddings + other) / 2
