"""The authors' ranking objective, with the padding of its lists: to find out what that is worth.

Their code keeps the relevant and the irrelevant items of every query as lists of indices. Classes of a batch have
different sizes, so shorter lists are filled up with index 0, the first image of the batch. From a filled list as many of
the highest scores are taken as it had items of its own. So a query may see the first image in place of items of its own,
several times and on either side. `RankingLoss` ranks every item once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.losses.batch_loss import BatchLoss
from rankshot.losses.checks import References
from rankshot.losses.chunked import objective_of
from rankshot.losses.registry import register
from rankshot.ranking.objectives import settings
from rankshot.ranking.pool import Counts
from rankshot.ranking.sorted_rows import Ranking, fits, objective_rows
from rankshot.vectors import unit_vectors


@register(
    "map-padded",
    fixed={"reduction": "mean"},
    listed=False,
    summary="mAP-SSVM or mAP-DLM with the padded lists of the authors' code, for the paper's table alone",
)
class PaddedListsLoss(BatchLoss):
    """mAP-SSVM or mAP-DLM of lists that are filled up with the first image of the batch.

    Args:
        framework: dlm or ssvm.
        epsilon: weight of the metric within loss-augmented inference.
        alpha: weight of the loss-augmented ranking.
        reduction: mean.
    """

    def __init__(
        self, framework: str = "dlm", epsilon: float = 1.0, alpha: float = 10.0, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.rankings = [Ranking(settings(framework, "ap", epsilon, alpha), 0.0, 1.0)]

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        if references is not None:
            raise ValueError("the authors' objective ranks the images of a batch, and no references")
        vectors = unit_vectors(embeddings)
        scores, relevant, rankable = padded_rows(vectors @ vectors.T, labels)
        loss, weights = self._objective(scores.detach(), relevant)
        by_scores = (weights.detach() * scores).sum(-1)
        losses = (by_scores + (loss - by_scores).detach()).where(rankable, 0.0)
        return losses.sum() / rankable.sum().clamp(min=1)

    def _objective(self, scores: Tensor, relevant: Tensor) -> tuple[Tensor, Tensor]:
        is_empty = torch.arange(scores.shape[1], device=scores.device) == scores.shape[1] - 1  # the last column
        irrelevant = ~relevant & ~is_empty
        if not fits(scores, self.rankings, scores.shape[1]):
            return objective_of(scores, relevant, irrelevant, ~(relevant | irrelevant), self.rankings)
        ids = is_empty.long()
        counts = Counts(relevant.sum(-1), irrelevant.sum(-1))
        queries = torch.ones(len(scores), dtype=torch.long, device=scores.device)
        return objective_rows(scores.clone(), relevant, (queries, ids), counts, scores.shape[1], self.rankings)


def padded_rows(similarities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, B) -> (B, B), (B, B), (B,): of every query its relevant scores and then the irrelevant ones, in falling order;
    which are relevant; and which queries have both. The last column is empty, since no query ranks itself."""
    size = len(labels)
    same, itself = labels[:, None] == labels, torch.eye(size, dtype=torch.bool, device=labels.device)
    relevant, irrelevant = same & ~itself, ~same
    n_relevant = relevant.sum(-1, keepdim=True)
    above, below = _filled(similarities, relevant), _filled(similarities, irrelevant)
    column = torch.arange(size, device=labels.device)
    is_relevant = column < n_relevant
    scores = torch.where(is_relevant, above, below.gather(1, (column - n_relevant).clamp(min=0)))
    scores = scores.masked_fill(column == size - 1, 0.0)
    rankable = (relevant.any(-1)) & (irrelevant.any(-1))
    return scores.masked_fill(scores.isinf(), 0.0), is_relevant & (column < size - 1), rankable


def _filled(similarities: Tensor, side: Tensor) -> Tensor:
    """(B, B): the scores of a side in falling order, after its list was filled up with the first image's."""
    counts = side.sum(-1, keepdim=True)
    missing = counts.max() - counts
    column = torch.arange(len(side), device=side.device)
    copies = similarities[:, :1].expand_as(similarities).masked_fill(column >= missing, -torch.inf)
    own = similarities.masked_fill(~side, -torch.inf)
    return torch.cat([own, copies], -1).sort(-1, descending=True).values[:, : len(side)]
