"""A loss on the batch of all processes: every image ranks the images of all of them.

Each process embeds its part of a batch, gathers the embeddings of all, and lets its own images be the queries. The
gradient by its embeddings has two parts: as queries, from here; as items, from the queries of every process, summed on the
way back through the gathering. The mean is over what counts in all processes together, and `DistributedDataParallel`
divides gradients by the number of processes, so the loss is multiplied by it. Then one update on N processes is one update
on one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from rankshot.gathering import gathered, hearing_of_losses, is_shared
from rankshot.vectors import computable

from .batch_loss import BatchLoss
from .checks import References, checked_batch, checked_ids
from .cross_batch_memory import CrossBatchMemory


class GatheredLoss(nn.Module):
    """A loss over the images of all processes, for a network in `DistributedDataParallel`.

    The batches of the processes may differ in size. The value is the mean over all images, the same on every process. In
    a single process, and where `torch.distributed` is not set up, it is the loss itself. Batch norm is not part of it: in
    training it must see the whole batch too, by `models.gather_batch_norm(network)`.

    Args:
        loss: a loss with reduction "mean", or a `CrossBatchMemory` of one, which then remembers images of all processes.
        group: of processes. None: all of them.

    Raises:
        TypeError: if `loss` is not one of this package.
        ValueError: if its reduction is not "mean".

    Examples:
        In a single process, as here, it gives what the loss gives:

        >>> import torch
        >>> from rankshot.losses import GatheredLoss, SupConLoss
        >>> loss = GatheredLoss(SupConLoss(temperature=1.0))
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> round(loss(embeddings, torch.tensor([0, 0, 1])).item(), 4)
        0.4846
    """

    def __init__(self, loss: BatchLoss | CrossBatchMemory, group: Any = None) -> None:
        super().__init__()
        self.memory = loss if isinstance(loss, CrossBatchMemory) else None
        base = loss.loss if isinstance(loss, CrossBatchMemory) else loss
        if not isinstance(base, BatchLoss):
            raise TypeError(f"loss must be one of rankshot's, got {type(loss).__name__}")
        if base.reduction != "mean":
            raise ValueError(f"the loss of all processes is a mean: its reduction must be 'mean', got {base.reduction!r}")
        self.loss, self.group = base, group

    def forward(self, embeddings: Tensor, labels: Tensor, *, ids: Tensor | None = None) -> Tensor:
        """The loss over the images of all processes.

        Args:
            embeddings: (B, D) float, those of this process.
            labels: (B,) integers.
            ids: (B,) integers, which image each one is; on all processes, or on none.

        Returns:
            A scalar, the same on every process.

        Raises:
            ValueError: if the embeddings of the processes differ in size, or only some processes give ids.
        """
        labels = checked_batch("embeddings", embeddings, "labels", labels)
        ids = None if ids is None else checked_ids("ids", ids, embeddings)
        if not is_shared(self.group):
            alone: Tensor = (self.loss if self.memory is None else self.memory)(embeddings, labels, ids=ids)
            return alone
        sizes = _sizes(embeddings, ids is not None, self.group)
        rank = distributed.get_rank(self.group)
        items = gathered(computable(embeddings), sizes, self.group)
        item_labels = gathered(labels, sizes, self.group)
        if ids is not None:
            item_ids = gathered(ids, sizes, self.group)
        elif self.memory is not None:
            item_ids = self.memory.new_ids(len(items))
        else:
            item_ids = torch.arange(len(items), device=items.device)
        query_ids = item_ids[sum(sizes[:rank]) : sum(sizes[: rank + 1])]
        references = References(items, item_labels, item_ids, query_ids)
        if self.memory is not None:
            references = self.memory.extended(references)
        with torch.autocast(embeddings.device.type, enabled=False):
            total, count = self.loss.sum_and_count(embeddings, labels, references)
        if self.memory is not None:
            self.memory.add(items, item_labels, item_ids)
        sums = torch.stack([total.detach().double(), count.double()])
        with hearing_of_losses():
            distributed.all_reduce(sums, group=self.group)
        of_all = sums[1].clamp(min=1).to(total.dtype)
        part = total * (len(sizes) / of_all)
        return part + ((sums[0] / sums[1].clamp(min=1)).to(part.dtype) - part).detach()


def _sizes(embeddings: Tensor, has_ids: bool, group: Any) -> list[int]:
    """How many images each process has; and a complaint on every process where their parts do not fit together."""
    here = torch.tensor([*embeddings.shape, int(has_ids)], device=embeddings.device)
    everywhere = [torch.empty_like(here) for _ in range(distributed.get_world_size(group))]
    with hearing_of_losses():
        distributed.all_gather(everywhere, here, group=group)
    sizes, dimensions, with_ids = zip(*(each.tolist() for each in everywhere), strict=True)
    if len(set(dimensions)) > 1:
        raise ValueError(f"embeddings must have the same dimensions on all processes, got {list(dimensions)}")
    if len(set(with_ids)) > 1:
        raise ValueError("give ids on all processes, or on none")
    return list(sizes)
