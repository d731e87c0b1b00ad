"""What the losses that compare the images of a batch have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .checks import checked_batch


class BatchLoss(nn.Module):
    """Checks the batch, and computes in full precision whatever the network did; a subclass says what is lost."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            return self.lost(embeddings, labels)

    def lost(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(B, D) of any precision and (B,) -> ()."""
        raise NotImplementedError
