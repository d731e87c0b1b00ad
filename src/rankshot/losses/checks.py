"""What every loss asks of a batch."""

from __future__ import annotations

import math

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


def check_smoothing(smoothing: float, samples: int) -> tuple[float, int]:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise ValueError(f"samples must be a whole number of at least 2, got {samples!r}")
    return check_not_negative("smoothing", smoothing), samples


def check_not_negative(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or a positive number, got {value!r}")
    return float(value)


def check_positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be above 0, got {value}")
    return float(value)
