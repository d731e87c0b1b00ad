"""The all-pairs siamese network, the paper's baseline."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankshot.limits import whole
from rankshot.vectors import unit_vectors

from .checks import checked_batch
from .registry import PRESETS, register

MOST_DIMENSIONS = 2**20


@register(
    "siamese",
    summary="are two images of one class? asked of every pair (the paper's baseline)",
    learning_rate=0.1,
    presets={**PRESETS, "mini-imagenet": {**PRESETS["mini-imagenet"], "updates": 24_000, "learning_rate": 0.01}},
)
class SiameseLoss(nn.Module):
    """Are two images of one class? Asked of every pair of the batch, and learned as a two-way softmax.

    What it optimises: the cross-entropy of "same" and "different", from the absolute difference of the two normalised
    embeddings, entry by entry, through one linear layer. The layer is part of the loss: give its parameters to the
    optimiser too. At test time it is not used; images are compared by the cosine of their embeddings.

    What batches it needs: any with two images or more. Most pairs differ in class when there are many classes. It looks at
    one pair at a time; `RankingLoss` optimises whole rankings.

    | input      | shape  | what                                           |
    |------------|--------|------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised |
    | labels     | (B,)   | integers                                       |

    >>> loss = SiameseLoss(dimensions=2)
    >>> loss(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), torch.tensor([0, 0, 1])).shape
    torch.Size([])
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.head = nn.Linear(whole("dimensions", dimensions, 1, MOST_DIMENSIONS), 2)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        if len(labels) < 2:
            raise ValueError("a pair needs two images, got a batch of 1")
        if embeddings.shape[1] != self.head.in_features:
            raise ValueError(f"made for {self.head.in_features} dimensions, got embeddings of {embeddings.shape[1]}")
        normalised = unit_vectors(embeddings).to(self.head.weight.dtype)
        one, other = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
        logits = self.head((_rows(normalised, one) - _rows(normalised, other)).abs())
        return nn.functional.cross_entropy(logits, (labels[one] == labels[other]).long())


def _rows(vectors: Tensor, indices: Tensor) -> Tensor:
    """Rows of a matrix, by the way whose gradient is summed in a fixed order: that is another on a GPU than on a CPU."""
    return vectors[indices] if vectors.is_cuda else vectors.index_select(0, indices)
