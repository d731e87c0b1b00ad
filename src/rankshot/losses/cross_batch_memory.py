"""Embeddings of earlier batches as further references: small batches that rank many images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rankshot.limits import whole
from rankshot.ranking.pool import EMPTY
from rankshot.vectors import unit_vectors

from .batch_loss import BatchLoss
from .checks import References, checked_batch, checked_ids, checked_references
from .classifier_loss import ClassifierLoss

MOST_IMAGES, MOST_DIMENSIONS = 2**24, 2**20


class CrossBatchMemory(nn.Module):
    """A loss whose images are compared with those of their batch, and with the last ones of earlier batches besides.

    What is remembered is a constant: it has no gradient, and is as the network embedded it then (Wang et al., 2020). An
    image is never compared with what is remembered of itself, where `ids` tell which image is which.

    The memory is part of its state: a checkpoint of a training run has it too.

    Args:
        loss: any loss of this package that compares images with one another.
        embedding_size: dimensions of the embeddings.
        memory_size: how many images to remember; the oldest go first.

    >>> from rankshot.losses import RankingLoss
    >>> loss = CrossBatchMemory(RankingLoss(), embedding_size=4, memory_size=100)
    >>> for batch in range(3):
    ...     value = loss(torch.randn(8, 4), torch.arange(8) % 2)
    >>> len(loss)
    24
    """

    def __init__(self, loss: BatchLoss, embedding_size: int, memory_size: int = 1024) -> None:
        super().__init__()
        if not isinstance(loss, BatchLoss) or isinstance(loss, ClassifierLoss):
            raise TypeError(f"loss must be one that compares images with one another, got {type(loss).__name__}")
        self.loss = loss
        whole("embedding_size", embedding_size, 1, MOST_DIMENSIONS)
        whole("memory_size", memory_size, 1, MOST_IMAGES)
        self.embeddings: Tensor
        self.labels: Tensor
        self.ids: Tensor
        self.added: Tensor
        self.register_buffer("embeddings", torch.zeros(memory_size, embedding_size))
        self.register_buffer("labels", torch.full((memory_size,), EMPTY))
        self.register_buffer("ids", torch.full((memory_size,), EMPTY))
        self.register_buffer("added", torch.zeros((), dtype=torch.int64))  # images so far

    def forward(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any = None, *, ids: Tensor | None = None
    ) -> Tensor:
        """embeddings (B, D), labels (B,), and ids (B,), which image each one is; without them every image is a new one."""
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        checked_references(embeddings, labels, indices_tuple, None, None, None, None, None)
        ids = self.new_ids(len(embeddings)) if ids is None else checked_ids("ids", ids, embeddings)
        references = self.extended(References(embeddings, labels, ids, ids))
        with torch.autocast(embeddings.device.type, enabled=False):
            value = self.loss.compute(embeddings, labels, references)
        self.add(embeddings, labels, ids)
        return value

    def new_ids(self, images: int) -> Tensor:
        """For images of which nobody says which they are."""
        return -1 - self.added - torch.arange(images, device=self.added.device)

    def extended(self, batch: References) -> References:
        """A batch that is compared with itself, and what is remembered besides."""
        size, dimensions = self.embeddings.shape
        if batch.embeddings.shape[1] != dimensions:
            raise ValueError(f"the memory is of {dimensions} dimensions, got embeddings of {batch.embeddings.shape[1]}")
        if len(batch.embeddings) > size:
            raise ValueError(f"a batch of {len(batch.embeddings)} images does not fit in a memory of {size}")
        if batch.ids is None:
            raise ValueError("a memory needs ids")
        return References(
            torch.cat([batch.embeddings, self.embeddings.to(batch.embeddings.dtype)]),
            torch.cat([batch.labels, self.labels]),
            torch.cat([batch.ids, self.ids]),
            batch.query_ids,
        )

    @torch.no_grad()
    def add(self, embeddings: Tensor, labels: Tensor, ids: Tensor) -> None:
        """Remember these, in place of the oldest."""
        places = (self.added + torch.arange(len(embeddings), device=embeddings.device)) % len(self.labels)
        self.embeddings.index_copy_(0, places, unit_vectors(embeddings.detach()).to(self.embeddings.dtype))
        self.labels.index_copy_(0, places, labels)
        self.ids.index_copy_(0, places, ids)
        self.added += len(embeddings)

    def __len__(self) -> int:
        """How many images are remembered."""
        return min(int(self.added), len(self.labels))

    def reset(self) -> None:
        """Forget them all."""
        self.labels.fill_(EMPTY)
        self.ids.fill_(EMPTY)
        self.added.zero_()
