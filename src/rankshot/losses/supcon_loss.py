"""Supervised contrastive learning (Khosla et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import positive

from .batch_loss import CosineLoss
from .registry import register


@register("supcon", fixed={"reduction": "mean"}, summary="supervised contrastive learning (Khosla et al., 2020)")
class SupConLoss(CosineLoss):
    """Supervised contrastive learning: each image of the same class is to be picked out of all others, one at a time.

    What it optimises: -mean_{j of i's class} log p_ij, with p_ij the softmax over j of cos(i, j) / temperature: the mean
    stands outside the logarithm (the paper's L_out), where NCA has the sum inside.

    What batches it needs: several classes with two or more images each. An image that is alone in its class is left out.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        temperature: of the softmax over the batch.
        reduction: mean, sum, or none.

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Cosines: 0.8 between the first two, 0.0 and 0.6 from these to the third:

        >>> import torch
        >>> from rankshot.losses import SupConLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> value = SupConLoss(temperature=1.0)(embeddings, torch.tensor([0, 0, 1]))
        >>> round(value.item(), 4)  # the mean of -log(e^0.8 / (e^0.8 + e^0)) and -log(e^0.8 / (e^0.8 + e^0.6))
        0.4846
    """

    def __init__(self, temperature: float = 0.1, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.temperature = positive("temperature", temperature)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        chances = (cosines / self.temperature).masked_fill(~valid, -torch.inf).log_softmax(-1)
        n_relevant = relevance.sum(-1)
        right = chances.masked_fill(~relevance, 0.0).sum(-1) / n_relevant.clamp(min=1)
        return -right, n_relevant > 0

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"temperature={self.temperature:g}"
