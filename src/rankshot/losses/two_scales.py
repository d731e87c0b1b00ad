"""mAP-DLM at two scales at once: what is nearly right, and the ranking as a whole."""

from __future__ import annotations

import math

from torch import Tensor, nn

from .ranking_loss import RankingLoss

FAR_EPSILON, FAR_ALPHA = 1.0, 3.0


class TwoScalesLoss(nn.Module):
    """`near` plus `wide` times `RankingLoss` with epsilon 1 and `wide_alpha`.

    What it optimises: with a small epsilon and alpha 1, `near` follows the gradient of the metric itself, which comes from
    the pairs of items that are about to change places, and from no others. The second term is the paper's own recipe:
    its window is wider than all differences of scores, so every pair takes part, those that are far apart too; with
    alpha above 1 it draws pairs towards the margin that the metric asks for, and comfortable ones together. What the two
    have given together so far is in docs/experiments.md.

    Inputs are those of `RankingLoss`. The value is the sum of both, which need not be positive.

    >>> TwoScalesLoss(RankingLoss(alpha=1.0, epsilon=0.003), wide=0.3).far
    RankingLoss(metric='ap', framework='dlm', epsilon=1, alpha=3, sign=+1, reduction='mean')
    """

    def __init__(self, near: RankingLoss, wide: float = 0.3, wide_alpha: float = FAR_ALPHA) -> None:
        super().__init__()
        if not 0 < wide < math.inf:
            raise ValueError(f"wide must be above 0, got {wide}")
        framework, metric, *_ = near.settings
        self.near, self.wide = near, wide
        self.far = RankingLoss(metric, framework, FAR_EPSILON, wide_alpha, reduction=near.reduction)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        ref_embeddings: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        near: Tensor = self.near(embeddings, labels, ref_embeddings, ref_labels)
        far: Tensor = self.far(embeddings, labels, ref_embeddings, ref_labels)
        return near + self.wide * far

    def extra_repr(self) -> str:
        return f"wide={self.wide:g}"
