"""Neighbourhood components analysis (Goldberger et al., 2004)."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import positive

from .batch_loss import CosineLoss
from .registry import register


@register(
    "nca",
    fixed={"reduction": "mean"},
    summary="neighbourhood components analysis (Goldberger et al., 2004): the chance of a right neighbour",
)
class NCALoss(CosineLoss):
    """Every image picks a neighbour at random, the nearer the likelier: the chance that it is one of its own class.

    What it optimises: -log sum_{j of i's class} p_ij, with p_ij the softmax over j of -|u_i - u_j|^2 / temperature, for
    unit vectors u; an image never picks itself. (The paper gives the sum of the chances and that of their logarithms as
    equals; the logarithm has a gradient where all is wrong yet.)

    What batches it needs: several classes with two or more images each. An image that is alone in its class is left out.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        temperature: how soft the choice of a neighbour is.
        reduction: mean, sum, or none.

    >>> NCALoss()(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
    tensor(...)
    """

    def __init__(self, temperature: float = 0.1, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.temperature = positive("temperature", temperature)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        scores = (2 * cosines - 2) / self.temperature  # |u - v|^2 = 2 - 2 u.v
        chances = scores.masked_fill(~valid, -torch.inf).log_softmax(-1)
        alone = ~relevance.any(-1, keepdim=True)
        right = chances.masked_fill(~relevance & ~alone, -torch.inf).logsumexp(-1)
        return -right.masked_fill(alone.squeeze(-1), 0.0), ~alone.squeeze(-1)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature:g}"
