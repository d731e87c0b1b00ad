"""An image and its mirror image, embedded as one."""

from __future__ import annotations

from torch import Tensor, nn


class Mirrored(nn.Module):
    """An embedding network whose embedding is the mean over an image and its mirror image.

    An image and its mirror image then have the same embedding, which suits photographs and does not suit letters. In
    training it embeds the image alone: random flips (`augment`) show it both, at half the cost.

    Args:
        network: the embedding network.

    Examples:
        >>> import torch
        >>> from rankshot.models import Mirrored
        >>> network = Mirrored(torch.nn.Flatten()).eval()
        >>> network(torch.tensor([[[[0.2, 0.8]]]]))  # the mean of (0.2, 0.8) and (0.8, 0.2)
        tensor([[0.5000, 0.5000]])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        if hasattr(network, "description"):
            self.description = {**network.description, "mirror": True}  # type: ignore[dict-item]

    @property
    def wrapped_network(self) -> nn.Module:
        """The embedding network within."""
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, D)."""
        embeddings: Tensor = self.network(images)
        if self.training:
            return embeddings
        # One after the other, not as one batch: each may be normalised by its own statistics.
        other: Tensor = self.network(images.flip(-1))
        return (embeddings + other) / 2
