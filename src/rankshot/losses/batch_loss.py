"""What the losses that compare the images of a batch have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .checks import checked_batch


class BatchLoss(nn.Module):
    """Checks the batch, and computes in full precision whatever the network did; `compute` is for a subclass."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            return self.compute(embeddings, labels)

    def compute(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(B, D) of any precision and (B,) -> ()."""
        raise NotImplementedError
