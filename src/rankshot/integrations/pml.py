"""rankshot's losses as losses of pytorch-metric-learning, which asks for its own base class in some places."""

from __future__ import annotations

from typing import Any

from pytorch_metric_learning.losses import BaseMetricLossFunction
from torch import Tensor, nn


class AdaptedLoss(BaseMetricLossFunction):  # type: ignore[misc]  # PML has no types
    """A loss of rankshot's, for `DistributedLossWrapper`, `MultipleLosses`, and PML's trainers.

    References that are the very tensor of the embeddings mean none, as in PML: the batch ranks itself, leave-one-out.
    PML's `CrossBatchMemory` and `SelfSupervisedLoss` take only the losses that they know, and refuse it.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, dict[str, Any]]:
        if indices_tuple is not None:
            raise ValueError(
                "indices_tuple must be None: every image is compared with all others, and there are no pairs or triplets "
                "to choose. Leave the miner out; DistributedLossWrapper hands such pairs over with efficient=True, so "
                "give it efficient=False"
            )
        # Where there are no references, PML hands the batch itself over.
        references = (None, None) if ref_emb is embeddings else (ref_emb, ref_labels)
        value = self.loss(embeddings, labels, None, *references)
        return {"loss": {"losses": value, "indices": None, "reduction_type": "already_reduced"}}


def adapt(loss: nn.Module) -> AdaptedLoss:
    """A loss of `rankshot.losses`, with reduction "mean" or "sum", as one of pytorch-metric-learning.

    >>> from rankshot.losses import RankingLoss
    >>> isinstance(adapt(RankingLoss()), BaseMetricLossFunction)
    True
    """
    if not isinstance(loss, nn.Module):
        raise TypeError(f"adapt takes a loss of rankshot.losses, got {loss!r:.60}")
    if getattr(loss, "reduction", "mean") == "none":
        raise ValueError("reduction must be 'mean' or 'sum': pytorch-metric-learning wants one number")
    return AdaptedLoss(loss)
