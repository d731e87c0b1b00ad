"""The all-pairs siamese network, the paper's baseline."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankshot.limits import whole
from rankshot.ranking.pool import EMPTY
from rankshot.vectors import unit_vectors

from .batch_loss import BatchLoss
from .checks import References, check_finite
from .registry import PRESETS, register

MOST_DIMENSIONS = 2**20


@register(
    "siamese",
    fixed={"reduction": "mean"},
    summary="are two images of one class? asked of every pair (the paper's baseline)",
    learning_rate=0.1,
    presets={**PRESETS, "mini-imagenet": {**PRESETS["mini-imagenet"], "updates": 24_000, "learning_rate": 0.01}},
)
class SiameseLoss(BatchLoss):
    """Are two images of the same class? Asked of every pair of the batch, as a two-way softmax.

    What it optimises: the cross-entropy of "same" and "different". A linear layer `head` takes the absolute difference of
    the two normalised embeddings, entry by entry. The layer is part of the loss: give its parameters to the optimiser
    too. At test time it is not used; images are compared by the cosine of their embeddings.

    What batches it needs: any with two images or more. Most pairs differ in class when there are many classes. It looks
    at one pair at a time; `RankingLoss` optimises whole rankings.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        dimensions: D of the embeddings.
        reduction: mean (over all pairs), sum, or none (the mean over the pairs of each image).

    Raises:
        ValueError: if a setting is out of range; when called, if a batch has one image, or embeddings of another size.

    Examples:
        A head that says "different" for pairs that differ by more than 1 in sum:

        >>> import torch
        >>> from rankshot.losses import SiameseLoss
        >>> loss = SiameseLoss(dimensions=2)
        >>> loss.head.weight.data = torch.tensor([[10.0, 10.0], [0.0, 0.0]])  # of "different", of "same"
        >>> loss.head.bias.data = torch.tensor([-10.0, 0.0])
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])  # the pairs differ by 0.8, 2.0 and 1.2
        >>> value = loss(embeddings, torch.tensor([0, 0, 1]))  # (log(1 + e^-2) + log(1 + e^-10) + log(1 + e^-2)) / 3
        >>> round(value.item(), 4)
        0.0846
    """

    def __init__(self, dimensions: int, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.head = nn.Linear(whole("dimensions", dimensions, 1, MOST_DIMENSIONS), 2)

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        logits, is_same, one, other, counted = self._pairs(embeddings, labels, references)
        if self.reduction == "mean" and counted is None:
            return nn.functional.cross_entropy(logits, is_same)
        losses = nn.functional.cross_entropy(logits, is_same, reduction="none")
        weights = torch.ones_like(losses) if counted is None else counted.to(losses.dtype)
        if self.reduction == "mean":
            return (weights * losses).sum() / weights.sum().clamp(min=1)
        return self.reduced(*_of_images(weights * losses, weights, one, other if references is None else None, len(labels)))

    def sum_and_count(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        logits, is_same, one, _, counted = self._pairs(embeddings, labels, references)
        losses = nn.functional.cross_entropy(logits, is_same, reduction="none")
        counted = torch.ones_like(one) if counted is None else counted
        return (losses * counted).sum(), counted.sum()

    def _pairs(
        self, embeddings: Tensor, labels: Tensor, references: References | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """(pairs, 2) scores, (pairs,) whether they are of one class, of which two images they are, and which count; None:
        all."""
        if len(labels) < 2 and references is None:
            raise ValueError("a pair needs two images, got a batch of 1")
        if embeddings.shape[1] != self.head.in_features:
            raise ValueError(f"made for {self.head.in_features} dimensions, got embeddings of {embeddings.shape[1]}")
        check_finite(embeddings, references)
        dtype, device, counted = self.head.weight.dtype, labels.device, None
        queries = unit_vectors(embeddings).to(dtype)
        if references is None:  # every pair once
            items, item_labels = queries, labels
            one, other = torch.triu_indices(len(labels), len(labels), offset=1, device=device)
        else:
            items, item_labels = unit_vectors(references.embeddings).to(dtype), references.labels
            one, other = torch.cartesian_prod(*(torch.arange(len(each), device=device) for each in (queries, items))).T
            if references.query_ids is not None and references.ids is not None:
                counted = (references.query_ids[one] != references.ids[other]) & (references.ids[other] != EMPTY)
        logits = self.head((_rows(queries, one) - _rows(items, other)).abs())
        return logits, (labels[one] == item_labels[other]).long(), one, other, counted


def _of_images(pairs: Tensor, weights: Tensor, one: Tensor, other: Tensor | None, images: int) -> tuple[Tensor, Tensor]:
    """(pairs,) -> (images,): the sum over the pairs of each image, and how many; a pair of the batch counts for both."""
    losses, counts = torch.zeros(2, images, dtype=pairs.dtype, device=pairs.device)
    for members in (one,) if other is None else (one, other):
        losses = losses.index_add(0, members, pairs)
        counts = counts.index_add(0, members, weights)
    return losses, counts


def _rows(vectors: Tensor, indices: Tensor) -> Tensor:
    """Rows of a matrix, by the way whose gradient is summed in a fixed order: that is another on a GPU than on a CPU."""
    return vectors[indices] if vectors.is_cuda else vectors.index_select(0, indices)
