"""The batches that are measured: two regimes, since the work grows with the relevant items of a query."""

from __future__ import annotations

import torch
from torch import Tensor

REGIMES = ("8 a class", "16 classes")
DIMENSIONS = 64


def batch(size: int, regime: str, seed: int, dimensions: int = DIMENSIONS, noise: float = 1.0) -> tuple[Tensor, Tensor]:
    """Embeddings around class centres, as a half-trained network gives them, and their labels."""
    random = torch.Generator().manual_seed(seed)
    classes = size // 8 if regime == "8 a class" else 16
    labels = torch.arange(size) % classes
    centres = torch.randn(classes, dimensions, generator=random)
    return centres[labels] + noise * torch.randn(size, dimensions, generator=random), labels
