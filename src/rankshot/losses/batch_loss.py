"""What the losses that compare the images of a batch have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rankshot.ranking.pool import relevance_of
from rankshot.vectors import unit_vectors

from .checks import References, check_finite, check_reduction, checked_batch, checked_references


class BatchLoss(nn.Module):
    """Checks the batch, and computes in full precision whatever the network did; `compute` is for a subclass.

    It is called as pytorch-metric-learning calls a loss: with references (`ref_emb`, `ref_labels`) every image is compared
    with these, and not with the others of its batch. Where the references contain the images of the batch, or other views
    of them, `ids` and `ref_ids` tell so: an image is not compared with references of its own id.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = check_reduction(reduction)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        *,
        ids: Tensor | None = None,
        ref_ids: Tensor | None = None,
        ref_embeddings: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch.

        Args:
            embeddings: (B, D) float of any precision; need not be normalised.
            labels: (B,) integers, the class of each image.
            indices_tuple: must be None. It is there for pytorch-metric-learning's order of arguments; a miner is refused.
            ref_emb: (G, D) references to compare the images with. None: the images are compared with one another.
            ref_labels: (G,) integers, of the references.
            ids: (B,) integers, which image each one is.
            ref_ids: (G,) integers, which image each reference is. An image is not compared with references of its own id.
            ref_embeddings: the former name of `ref_emb`.

        Returns:
            A scalar, or (B,) with reduction "none". Computed in float32, or in float64 for float64 embeddings.

        Raises:
            TypeError: if embeddings are not floating point, or labels or ids are not integers.
            ValueError: if shapes do not fit, only one of `ref_emb` and `ref_labels` is given, `indices_tuple` is not
                None, or embeddings are not finite. On a GPU only `RankingLoss` looks whether they are, since the host
                has to wait for it; a NaN shows in the value of the others.
        """
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        references = checked_references(
            embeddings, labels, indices_tuple, ref_emb, ref_labels, ids, ref_ids, ref_embeddings
        )
        with torch.autocast(embeddings.device.type, enabled=False):
            return self.compute(embeddings, labels, references)

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        """The loss of checked inputs: (B, D), (B,) and references or None -> a scalar, or (B,) with reduction "none"."""
        raise NotImplementedError

    def sum_and_count(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        """Sum and count, two scalars whose quotient is the mean: for a process that has only a part of the queries."""
        raise NotImplementedError

    def reduced(self, losses: Tensor, counted: Tensor) -> Tensor:
        """Apply `reduction` to losses (Q,) or (Q, any), given which of them count, in the same shape; the others must be 0.

        The mean is over all that count. With reduction "none" it is the mean over those of each query.
        """
        if self.reduction == "mean":
            return losses.sum() / counted.sum().clamp(min=1)
        of_query = losses.view(len(losses), -1).sum(-1) / counted.view(len(losses), -1).sum(-1).clamp(min=1)
        return of_query.sum() if self.reduction == "sum" else of_query


class CosineLoss(BatchLoss):
    """A loss that depends on cosines alone; `of_cosines` is for a subclass."""

    def compute(self, embeddings: Tensor, labels: Tensor, references: References | None) -> Tensor:
        return self.reduced(*self._parts(embeddings, labels, references))

    def sum_and_count(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        losses, counted = self._parts(embeddings, labels, references)
        return losses.sum(), counted.sum()

    def _parts(self, embeddings: Tensor, labels: Tensor, references: References | None) -> tuple[Tensor, Tensor]:
        check_finite(embeddings, references)
        queries = unit_vectors(embeddings)
        items = queries if references is None else unit_vectors(references.embeddings)
        known = () if references is None else (references.labels, references.query_ids, references.ids)
        dtype = torch.promote_types(queries.dtype, items.dtype)
        return self.of_cosines(queries.to(dtype) @ items.to(dtype).T, *relevance_of(labels, *known))

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """The loss from cosines, which items are relevant, and which count, (Q, G) each -> what `reduced` takes."""
        raise NotImplementedError
