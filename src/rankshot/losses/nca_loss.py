"""Neighbourhood components analysis (Goldberger et al., 2004)."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import positive
from rankshot.ranking.pool import relevance_of
from rankshot.vectors import unit_vectors

from .batch_loss import BatchLoss
from .registry import register


@register("nca", summary="neighbourhood components analysis (Goldberger et al., 2004): the chance of a right neighbour")
class NCALoss(BatchLoss):
    """Every image picks a neighbour at random, the nearer the likelier: the chance that it is one of its own class.

    What it optimises: -log sum_{j of i's class} p_ij, with p_ij the softmax over j of -|u_i - u_j|^2 / temperature, for
    unit vectors u; an image never picks itself. (The paper gives the sum of the chances and that of their logarithms as
    equals; the logarithm has a gradient where all is wrong yet.)

    What batches it needs: several classes with two or more images each. An image that is alone in its class is left out.

    | input      | shape  | what                                           |
    |------------|--------|------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised |
    | labels     | (B,)   | integers                                       |

    Args:
        temperature: how soft the choice of a neighbour is.

    >>> NCALoss()(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
    tensor(...)
    """

    def __init__(self, temperature: float = 0.1) -> None:
        super().__init__()
        self.temperature = positive("temperature", temperature)

    def compute(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        normalised = unit_vectors(embeddings)
        scores = (2 * normalised @ normalised.T - 2) / self.temperature  # |u - v|^2 = 2 - 2 u.v
        relevance, valid = relevance_of(labels)
        chances = scores.masked_fill(~valid, -torch.inf).log_softmax(-1)
        alone = ~relevance.any(-1, keepdim=True)
        right = chances.masked_fill(~relevance & ~alone, -torch.inf).logsumexp(-1)
        return -right.masked_fill(alone.squeeze(-1), 0.0).sum() / (~alone).sum().clamp(min=1)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature:g}"
