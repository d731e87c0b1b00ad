"""Embedding networks that classify by a rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from rankshot.models.pretrained import NETWORKS, build


class RuledNetwork(nn.Module):
    """An embedding network, and a rule: embeddings of labelled images and of others -> a score of every class."""

    def __init__(self, embedder: Mapping[str, Any]) -> None:
        super().__init__()
        self.embedder = build(embedder)

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.embedder(images)
        return embeddings

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """(E, way, shot, D) and (E, Q, D), of so many episodes -> (E, Q, way); the largest is the answer."""
        raise NotImplementedError


def network(name: str) -> Callable[[type[nn.Module]], type[nn.Module]]:
    """A class decorator: `from_pretrained` can build it from a description of this name then."""

    def known(kind: type[nn.Module]) -> type[nn.Module]:
        if name in NETWORKS and NETWORKS[name].__qualname__ != kind.__qualname__:  # a file may be run again
            raise ValueError(f"there is a network {name!r} already: {NETWORKS[name].__qualname__}")
        NETWORKS[name] = kind
        return kind

    return known
