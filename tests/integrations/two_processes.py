"""One of two processes: `python two_processes.py RANK FILE WHAT`. Prints what it found as JSON."""

import json
import sys

import torch
from torch import distributed

from rankshot import losses
from rankshot.ranking import RetrievalMetric

RANK, FILE, WHAT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)


def batch():
    random = torch.Generator().manual_seed(0)
    images = torch.randn(16, 6, generator=random, dtype=torch.float64)
    return images, torch.randint(4, (16,), generator=random), torch.randn(6, 5, generator=random, dtype=torch.float64)


def gradient(loss, part):
    """Of one layer, by a part of the batch."""
    images, labels, weights = batch()
    weights.requires_grad_()
    loss(images[part] @ weights, labels[part]).backward()
    return weights.grad


def main():
    distributed.init_process_group("gloo", init_method=f"file://{FILE}", rank=RANK, world_size=2)
    part = slice(8 * RANK, 8 * RANK + 8)
    if WHAT == "metric":
        images, labels, _ = batch()
        found = RetrievalMetric("ap")
        if RANK == 0 or len(sys.argv) < 5:
            found.update(images[part].sum(-1), labels[part] < 2, labels[part] % 3)
        print(json.dumps(found.compute().item()))
    else:
        from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

        from rankshot.integrations.pml import adapt

        kind = getattr(losses, WHAT)
        wrapped = DistributedLossWrapper(adapt(kind()), efficient=len(sys.argv) > 4)
        try:
            found = gradient(wrapped, part)
            distributed.all_reduce(found)
            print(json.dumps((found / 2).tolist()))  # as DistributedDataParallel does
        except ValueError as error:
            print(json.dumps(str(error)))
    distributed.barrier()  # who leaves first takes the connection with it
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
