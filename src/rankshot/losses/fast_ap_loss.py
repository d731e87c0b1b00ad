"""FastAP (Cakir et al., 2019): average precision of distances sorted into bins."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import whole
from rankshot.vectors import squared_distances

from .batch_loss import CosineLoss
from .registry import register

MOST_BINS = 1000
LARGEST = 4.0  # squared distance of two unit vectors


@register("fast-ap", fixed={"reduction": "mean"}, summary="average precision by histograms (Cakir et al., 2019)")
class FastAPLoss(CosineLoss):
    """FastAP: average precision where all items in one bin of distances share a rank.

    What it optimises: 1 - AP, with AP = 1/P sum_b h+_b H+_b / H_b. h+_b is the number of relevant items in bin b; H+_b
    and H_b are the numbers of relevant items, and of all items, up to it. Bins are soft: an item counts in the two bins
    that it lies between, by linear interpolation.

    What batches it needs: several classes with two or more images each; large ones, the paper says. Queries with nothing
    relevant or nothing irrelevant are left out of the mean.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        bins: of the histogram of distances.
        reduction: mean, sum, or none.

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Two images of class 0; the one of class 1 lies between them, so both rank it first, with AP 1/2:

        >>> import torch
        >>> from rankshot.losses import FastAPLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> round(FastAPLoss()(embeddings, torch.tensor([0, 1, 0])).item(), 4)
        0.5
    """

    def __init__(self, bins: int = 10, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.bins = whole("bins", bins, 1, MOST_BINS)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        distances = squared_distances(cosines)
        centres = torch.linspace(0.0, LARGEST, self.bins + 1, dtype=distances.dtype, device=distances.device)
        share = (1 - (distances[..., None] - centres).abs() * self.bins / LARGEST).clamp(min=0)  # of each bin
        relevant, everyone = ((share * mask[..., None]).sum(1) for mask in (relevance, valid))
        up_to, all_up_to = relevant.cumsum(-1), everyone.cumsum(-1)
        n_relevant = relevance.sum(-1)
        precision = (relevant * up_to / all_up_to.clamp(min=1e-9)).sum(-1) / n_relevant.clamp(min=1)
        rankable = (n_relevant > 0) & (n_relevant < valid.sum(-1))
        return (1 - precision) * rankable, rankable

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"bins={self.bins}"
