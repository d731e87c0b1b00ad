"""Classifiers over the training classes, for the embedding that they need on the way."""

from __future__ import annotations

from torch import Tensor, nn

from rankshot.limits import positive, whole
from rankshot.vectors import unit_vectors

from .batch_loss import BatchLoss
from .checks import References, check_finite

MOST = 2**20
NOBODY = -(2**62)  # a label that torch may pass over: by itself it would do so with -100


class ClassifierLoss(BatchLoss):
    """Cross-entropy over the training classes, of a linear layer or of cosines.

    What it optimises: the softmax over weight_c . x + bias_c, or with `cosine` over scale * cos(weight_c, x) (Chen et
    al., 2019, "Baseline++"). The layer `head` is part of the loss: give its parameters to the optimiser too. At test time
    it is not used, since the classes are others.

    What batches it needs: any. Labels are numbers from 0 to `classes` - 1, of all training classes and not of the batch.

    | input      | shape  | what                           |
    |------------|--------|--------------------------------|
    | embeddings | (B, D) | float of any precision         |
    | labels     | (B,)   | integers from 0 to classes - 1 |

    Args:
        dimensions: D of the embeddings.
        classes: number of training classes.
        cosine: by cosines, as Baseline++, rather than by a linear layer.
        scale: factor of the cosines.
        reduction: mean, sum, or none.

    Raises:
        ValueError: if a setting is out of range; when called, if a label is out of range or `ref_emb` is given.

    Examples:
        >>> import torch
        >>> from rankshot.losses import ClassifierLoss
        >>> loss = ClassifierLoss(dimensions=2, classes=2, cosine=True, scale=10.0)
        >>> loss.head.weight.data = torch.eye(2)
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.6, 0.8]])  # the second is nearer to class 1
        >>> value = loss(embeddings, torch.tensor([0, 0]))
        >>> round(value.item(), 4)  # the mean of log(1 + e^-10) and log(1 + e^2)
        1.0635
    """

    def __init__(
        self, dimensions: int, classes: int, *, cosine: bool = False, scale: float = 10.0, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        sizes = whole("dimensions", dimensions, 1, MOST), whole("classes", classes, 1, MOST)
        self.head = nn.Linear(*sizes, bias=not cosine)
        self.cosine, self.scale = cosine, positive("scale", scale)

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        if references is not None and (references.ids is None or references.ids is not references.query_ids):
            raise ValueError("ref_emb must be None: a classifier compares images with classes, and not with one another")
        check_finite(embeddings, None)
        return self._entropy(embeddings, labels, self.reduction)

    def sum_and_count(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        """Sum and count of the own images; references are ignored, since other processes classify their own."""
        check_finite(embeddings, references)  # of all processes: if one complains, all do
        return self._entropy(embeddings, labels, "sum"), (labels != NOBODY).sum()

    def _entropy(self, embeddings: Tensor, labels: Tensor, reduction: str) -> Tensor:
        values = embeddings.to(self.head.weight.dtype)
        scores = self._by_cosine(values) if self.cosine else self.head(values)
        try:
            return nn.functional.cross_entropy(scores, labels, ignore_index=NOBODY, reduction=reduction)
        except IndexError as error:  # torch looks at them on a CPU; to look at them here would make a GPU wait
            raise ValueError(f"labels must be from 0 to {self.head.out_features - 1}: {error}") from None

    def _by_cosine(self, values: Tensor) -> Tensor:
        return self.scale * unit_vectors(values) @ unit_vectors(self.head.weight).T
