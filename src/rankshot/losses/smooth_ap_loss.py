"""Smooth-AP (Brown et al., 2020), today's usual way to learn average precision: a rival to measure against."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import positive

from .batch_loss import CosineLoss
from .registry import PRESETS, RECIPE, register


@register(
    "smooth-ap",
    fixed={"reduction": "mean"},
    run_settings=RECIPE,
    presets={name: {"learning_rate": 0.001, "schedule": "constant", **settings} for name, settings in PRESETS.items()},
    summary="average precision with softened comparisons (Brown et al., 2020)",
)
class SmoothAPLoss(CosineLoss):
    """Smooth-AP: average precision with every comparison of two scores softened to a sigmoid.

    What it optimises: 1 - AP, where "item j stands above item i" counts sigmoid((s_j - s_i) / temperature) instead of 0
    or 1. The lower the temperature, the nearer to AP, and the fewer pairs have a gradient.

    What batches it needs: several classes with two or more images each. Every query compares every pair of items, so time
    and memory grow with the cube of the batch; `RankingLoss` takes large batches. Queries with nothing relevant or
    nothing irrelevant are left out of the mean.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        temperature: how soft a comparison is.
        reduction: mean, sum, or none.

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Two images of class 0; the one of class 1 lies between them, so both rank it first, with AP 1/2:

        >>> import torch
        >>> from rankshot.losses import SmoothAPLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> round(SmoothAPLoss()(embeddings, torch.tensor([0, 1, 0])).item(), 4)
        0.5
    """

    def __init__(self, temperature: float = 0.01, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.temperature = positive("temperature", temperature)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        scores = cosines / self.temperature
        above = torch.sigmoid(scores[:, None, :] - scores[:, :, None])  # [query, item, other]: is the other above?
        counted = torch.stack([relevance, valid], -1).to(above.dtype)
        # An item is half above itself: 0.5 of what is counted here is its own, and 1 is its place.
        among_relevant, among_all = (torch.bmm(above, counted) + 0.5).unbind(-1)
        n_relevant = relevance.sum(-1)
        precision = (relevance * among_relevant / among_all).sum(-1) / n_relevant.clamp(min=1)
        rankable = (n_relevant > 0) & (n_relevant < valid.sum(-1))
        return (1 - precision) * rankable, rankable

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"temperature={self.temperature:g}"
