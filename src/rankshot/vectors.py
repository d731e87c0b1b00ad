"""Embeddings as vectors of length 1, where the cosine is a dot product."""

from __future__ import annotations

import torch
from torch import Tensor


class NotFinite(ValueError):
    """Numbers that are none, or infinite, where something is to be learned from them."""


def computable(values: Tensor) -> Tensor:
    """float32 or float64: half precisions are widened, since sums over a ranking need the digits."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def unit_vectors(embeddings: Tensor) -> Tensor:
    """(B, D) -> (B, D) of length 1, in float32 or float64, differentiable.

    A zero embedding stays zero, so its similarity to everything is 0, and it receives no gradient (a network that ends in
    a ReLU does produce them). So does one that is so short that its gradient would overflow: no entry of 1e-19 or more
    (6e-5 in float16, 1e-154 in float64). Rows are scaled by their largest entry first: squares neither overflow nor vanish.

    >>> unit_vectors(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    smallest = torch.finfo(embeddings.dtype).tiny
    embeddings = computable(embeddings)
    smallest = max(smallest, torch.finfo(embeddings.dtype).tiny ** 0.5)
    size = embeddings.detach().abs().amax(-1, keepdim=True)
    is_zero = size < smallest
    scaled = embeddings / size.masked_fill(is_zero, 1.0)
    length: Tensor = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return (scaled / length.masked_fill(is_zero, 1.0)).masked_fill(is_zero, 0.0)


def squared_distances(cosines: Tensor) -> Tensor:
    """Of unit vectors with these cosines: from 0 to 4."""
    return 2 - 2 * cosines.clamp(-1, 1)
