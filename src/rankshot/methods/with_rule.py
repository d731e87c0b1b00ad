"""Embedding networks that classify by a rule of their own."""

from __future__ import annotations

from torch import Tensor, nn


class NetworkWithRule(nn.Module):
    """An embedding network, and a rule: embeddings of labelled images and of others -> a score of every class."""

    def __init__(self, embedder: nn.Module) -> None:
        super().__init__()
        self.embedder = embedder

    @property
    def wrapped_network(self) -> nn.Module:
        return self.embedder

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.embedder(images)
        return embeddings

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """(E, way, shot, D) and (E, Q, D), of so many episodes -> (E, Q, way); the largest is the answer."""
        raise NotImplementedError
