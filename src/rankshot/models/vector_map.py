"""A small map of vectors that are there already: what `RankingTransformer` learns."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class VectorMap(nn.Module):
    """Vectors (n, D) less an offset, mapped to (n, K): linearly, and with `hidden` also through a layer of that width.

    The hidden layer is added to the linear map and its output weights start at zero, so both kinds start as the same map.

    >>> VectorMap(3, 3)(torch.tensor([[1.0, 2.0, 3.0]])).tolist()  # before it has learned anything
    [[1.0, 2.0, 3.0]]
    """

    def __init__(self, dimensions: int, components: int, hidden: int | None = None) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(dimensions))
        self.weight = nn.Parameter(torch.eye(components, dimensions))
        if hidden is not None:
            self.inner = nn.Parameter(torch.zeros(hidden, dimensions))
            self.bias = nn.Parameter(torch.zeros(hidden))
            self.outer = nn.Parameter(torch.zeros(components, hidden))
        self.hidden = hidden

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = vectors - self.offset
        mapped = nn.functional.linear(vectors, self.weight)
        if self.hidden is not None:
            mapped = mapped + nn.functional.linear(nn.functional.linear(vectors, self.inner, self.bias).relu(), self.outer)
        return mapped
