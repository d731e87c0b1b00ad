"""Embedding networks that classify by a rule of their own."""

from __future__ import annotations

from torch import Tensor, nn


class NetworkWithRule(nn.Module):
    """Base class of embedding networks that classify by a rule of their own; a subclass has `class_scores`.

    Args:
        embedder: the embedding network.

    Examples:
        >>> import torch
        >>> from rankshot.methods import NetworkWithRule
        >>> class ByDistance(NetworkWithRule):
        ...     def class_scores(self, support, queries):
        ...         return -torch.cdist(queries, support.mean(2))
        >>> network = ByDistance(torch.nn.Flatten())
        >>> support = torch.tensor([[[[0.0, 0.0]], [[3.0, 4.0]]]])  # 1 episode, 2 classes, 1 shot, 2 dimensions
        >>> network.class_scores(support, torch.tensor([[[3.0, 0.0]]])).abs()  # distances of the query to the classes
        tensor([[[3., 4.]]])
    """

    def __init__(self, embedder: nn.Module) -> None:
        super().__init__()
        self.embedder = embedder

    @property
    def wrapped_network(self) -> nn.Module:
        """The embedding network within."""
        return self.embedder

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, D)."""
        embeddings: Tensor = self.embedder(images)
        return embeddings

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """The scores of the classes for the queries of E episodes: (E, way, shot, D) and (E, Q, D) -> (E, Q, way)."""
        raise NotImplementedError
