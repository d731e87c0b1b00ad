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
    """Neighbourhood components analysis: the chance that a random neighbour, nearer ones more likely, is of the own class.

    What it optimises: -log sum_{j of i's class} p_ij, with p_ij the softmax over j of -|u_i - u_j|^2 / temperature, for
    unit vectors u; an image never picks itself. (The paper treats the sum of the chances and the sum of their logarithms
    as equal; the logarithm has a gradient also where everything is still wrong.)

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

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Squared distances: 0.4 between the first two, 2.0 and 0.8 from these to the third:

        >>> import torch
        >>> from rankshot.losses import NCALoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> value = NCALoss(temperature=1.0)(embeddings, torch.tensor([0, 0, 1]))
        >>> round(value.item(), 4)  # the mean of -log(e^-0.4 / (e^-0.4 + e^-2.0)) and -log(e^-0.4 / (e^-0.4 + e^-0.8))
        0.3485
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
        """The settings, for `repr`."""
        return f"temperature={self.temperature:g}"
