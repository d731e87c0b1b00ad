"""What every loss asks of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.ranking.checks import check_tensor
from rankshot.ranking.pool import check_labels


def checked_batch(name: str, embeddings: Tensor, labels_name: str, labels: Tensor) -> Tensor:
    """A copy of the labels, as int64 on the device of the embeddings: the caller may fill its own anew before backward."""
    check_tensor(name, embeddings)
    if embeddings.dim() != 2 or 0 in embeddings.shape:
        raise ValueError(f"{name} must be (images, dimensions) with at least one of each, got {tuple(embeddings.shape)}")
    if not embeddings.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {embeddings.dtype}")
    check_labels(labels_name, labels)
    if len(labels) != len(embeddings):
        raise ValueError(f"{labels_name} must be one for each of {len(embeddings)} {name}, got {len(labels)}")
    return labels.to(embeddings.device, torch.int64, copy=True)
