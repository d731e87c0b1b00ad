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
    """A loss that also compares the images of a batch with images of earlier batches (Wang et al., 2020).

    Remembered embeddings are constants: they have no gradient, and are as the network embedded them then. An image is
    never compared with what is remembered of itself, if `ids` tell which image is which. The memory is part of the state
    dict, and so of the checkpoint of a training run.

    Args:
        loss: any loss of this package that compares images with one another.
        embedding_size: dimensions of the embeddings.
        memory_size: how many images to remember; the oldest go first.

    Raises:
        TypeError: if `loss` is not one of this package, or is a `ClassifierLoss`.
        ValueError: if a size is out of range.

    Examples:
        The one image of the second batch is compared with the two of the first:

        >>> import torch
        >>> from rankshot.losses import CrossBatchMemory, SupConLoss
        >>> loss = CrossBatchMemory(SupConLoss(temperature=1.0), embedding_size=2, memory_size=100)
        >>> loss(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])).item()  # no two images of one class yet
        0.0
        >>> value = loss(torch.tensor([[0.8, 0.6]]), torch.tensor([0]))
        >>> round(value.item(), 4)  # -log(e^0.8 / (e^0.8 + e^0.6))
        0.5981
        >>> len(loss)  # images remembered
        3
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
        """The loss of a batch, which is remembered then.

        Args:
            embeddings: (B, D) float.
            labels: (B,) integers.
            indices_tuple: must be None; a miner is refused.
            ids: (B,) integers, which image each one is. None: every image is a new one.

        Returns:
            A scalar, or (B,) if the reduction of the loss is "none".

        Raises:
            ValueError: if the embeddings have another size than the memory, or the batch is larger than the memory.
        """
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        checked_references(embeddings, labels, indices_tuple, None, None, None, None, None)
        ids = self.new_ids(len(embeddings)) if ids is None else checked_ids("ids", ids, embeddings)
        references = self.extended(References(embeddings, labels, ids, ids))
        with torch.autocast(embeddings.device.type, enabled=False):
            value = self.loss.compute(embeddings, labels, references)
        self.add(embeddings, labels, ids)
        return value

    def new_ids(self, images: int) -> Tensor:
        """Ids (images,) for images that come without."""
        return -1 - self.added - torch.arange(images, device=self.added.device)

    def extended(self, batch: References) -> References:
        """The references of a batch that is compared with itself, followed by those in the memory."""
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
        """Remember embeddings (B, D), labels (B,) and ids (B,), in place of the oldest."""
        places = (self.added + torch.arange(len(embeddings), device=embeddings.device)) % len(self.labels)
        self.embeddings.index_copy_(0, places, unit_vectors(embeddings.detach()).to(self.embeddings.dtype))
        self.labels.index_copy_(0, places, labels)
        self.ids.index_copy_(0, places, ids)
        self.added += len(embeddings)

    def __len__(self) -> int:
        """How many images are remembered."""
        return min(int(self.added), len(self.labels))

    def reset(self) -> None:
        """Forget all images."""
        self.labels.fill_(EMPTY)
        self.ids.fill_(EMPTY)
        self.added.zero_()
