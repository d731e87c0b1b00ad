"""Triplets with semi-hard negatives (Schroff et al., 2015)."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import positive
from rankshot.vectors import squared_distances

from .batch_loss import CosineLoss
from .registry import register


@register("triplet", fixed={"reduction": "mean"}, summary="triplets with semi-hard negatives (Schroff et al., 2015)")
class TripletLoss(CosineLoss):
    """Triplets with semi-hard negatives: an image of the same class is to be nearer than one of another, by a margin.

    What it optimises: [margin + d(a, p) - d(a, n)]_+ over all pairs (a, p) of one class, with squared distances of unit
    vectors. n is the semi-hard negative: the nearest that is farther than p; where there is none, the farthest.

    What batches it needs: two classes or more, one of them with two images. It learns from one negative a pair;
    `RankingLoss` from all.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        margin: by which an image of the own class is to be nearer.
        reduction: mean (over all pairs), sum, or none (the mean over the pairs of each image).

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Squared distances: 0.4 between the first two, 2.0 and 0.8 from these to the third:

        >>> import torch
        >>> from rankshot.losses import TripletLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> value = TripletLoss(margin=0.5)(embeddings, torch.tensor([0, 0, 1]))
        >>> round(value.item(), 4)  # ([0.5 + 0.4 - 2.0]_+ + [0.5 + 0.4 - 0.8]_+) / 2
        0.05
    """

    def __init__(self, margin: float = 0.2, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = positive("margin", margin)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        distances = squared_distances(cosines)
        irrelevant = valid & ~relevance
        # [anchor, positive, other]: of another class, and farther than the positive
        farther = irrelevant[:, None, :] & (distances[:, None, :] > distances[:, :, None])
        semi_hard = distances[:, None, :].masked_fill(~farther, torch.inf).amin(-1)
        farthest = distances.masked_fill(~irrelevant, -torch.inf).amax(-1, keepdim=True)
        negative = torch.where(farther.any(-1), semi_hard, farthest)
        pairs = relevance & irrelevant.any(-1, keepdim=True)
        lost = (self.margin + distances - negative).where(pairs, 0.0).clamp(min=0)
        return lost, pairs

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"margin={self.margin:g}"
