"""rankshot's losses as losses of pytorch-metric-learning, which asks for its own base class in some places."""

from __future__ import annotations

from typing import Any

from pytorch_metric_learning.losses import BaseMetricLossFunction
from torch import Tensor, nn

__all__ = ["AdaptedLoss", "adapt"]


class AdaptedLoss(BaseMetricLossFunction):  # type: ignore[misc]  # PML has no types
    """A loss of rankshot's as one of pytorch-metric-learning, for `DistributedLossWrapper`, `MultipleLosses` and trainers.

    `adapt` makes one, and checks the loss. References that are the very tensor of the embeddings mean none, as in
    pytorch-metric-learning: the batch ranks itself, leave-one-out. Its `CrossBatchMemory` and `SelfSupervisedLoss` take
    only the losses that they know, and refuse this one.

    Args:
        loss: one of `rankshot.losses`, with reduction "mean" or "sum".

    Examples:
        Cosines: 0.8 between the first two, 0.0 and 0.6 from these to the third:

        >>> import torch
        >>> from rankshot.integrations.pml import AdaptedLoss
        >>> from rankshot.losses import SupConLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> value = AdaptedLoss(SupConLoss(temperature=1.0))(embeddings, torch.tensor([0, 0, 1]))
        >>> round(value.item(), 4)  # as SupConLoss itself gives
        0.4846
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def compute_loss(
        self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, ref_emb: Tensor, ref_labels: Tensor
    ) -> dict[str, dict[str, Any]]:
        """The loss of a batch, in the form that pytorch-metric-learning asks of its losses; it calls this itself.

        Raises:
            ValueError: if `indices_tuple` is not None.
        """
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
    """Make a loss of `rankshot.losses` one of pytorch-metric-learning, where that asks for its own base class.

    Args:
        loss: with reduction "mean" or "sum".

    Returns:
        The adapted loss, which gives the same values.

    Raises:
        TypeError: if `loss` is no module.
        ValueError: if its reduction is "none".

    Examples:
        >>> from pytorch_metric_learning.losses import BaseMetricLossFunction
        >>> from rankshot.integrations.pml import adapt
        >>> from rankshot.losses import RankingLoss
        >>> isinstance(adapt(RankingLoss()), BaseMetricLossFunction)
        True
    """
    if not isinstance(loss, nn.Module):
        raise TypeError(f"adapt takes a loss of rankshot.losses, got {loss!r:.60}")
    if getattr(loss, "reduction", "mean") == "none":
        raise ValueError("reduction must be 'mean' or 'sum': pytorch-metric-learning wants one number")
    return AdaptedLoss(loss)
