"""One batch over several processes: torchrun --nproc-per-node 2 examples/distributed_loop.py

Every process embeds its share of each batch, and its images rank those of all. The updates are those of a single process
with the whole batch (python examples/distributed_loop.py), up to rounding. Everything is in float64, so that the two runs
can be compared: with float32, rounding grows over updates, since a ranking loss has gradients with jumps. The images are
scikit-learn's digits.
"""

import os
import sys

import torch
from sklearn.datasets import load_digits
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from rankshot import ranking
from rankshot.losses import GatheredLoss, RankingLoss
from rankshot.models import gather_batch_norm

STEPS, BATCH = 60, 96


def main() -> None:
    torch.set_default_dtype(torch.float64)
    together = "RANK" in os.environ  # torchrun tells
    if together:
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world = (distributed.get_rank(), distributed.get_world_size()) if together else (0, 1)
    device = (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")
    )
    torch.manual_seed(0)  # the same first weights everywhere
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float64, device=device)[:, None] / 16
    labels = torch.tensor(digits.target, device=device)
    seen = labels < 7

    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1),
        torch.nn.AdaptiveMaxPool2d(2),
        torch.nn.Flatten(),
    ).to(device)
    # Batch norm, too, sees the whole batch.
    network = DistributedDataParallel(gather_batch_norm(model)) if together else model
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = GatheredLoss(RankingLoss())

    def unseen() -> float:
        model.eval()
        with torch.no_grad():
            unit = torch.nn.functional.normalize(model(images[~seen]), dim=-1)
        model.train()
        relevance, valid = ranking.relevance_of(labels[~seen])
        return ranking.average_precision(unit @ unit.T, relevance, valid).mean().item()

    before = unseen()
    generator = torch.Generator().manual_seed(0)  # the same batches everywhere …
    for _ in range(STEPS):
        batch = seen.nonzero().flatten()[torch.randperm(int(seen.sum()), generator=generator)[:BATCH]]
        share = batch[rank::world]  # … and this process's share of each
        optimiser.zero_grad()
        loss_of(network(images[share]), labels[share]).backward()
        optimiser.step()
    if rank == 0:
        length = sum(weight.detach().double().square().sum() for weight in model.parameters()) ** 0.5
        print(
            f"{world} processes. mAP on digits never seen: {before:.3f} before, {unseen():.3f} after; weights {length:.9f}"
        )
    if together:
        distributed.barrier()
        sys.stdout.flush()
        os._exit(0)  # gloo aborts now and then when a group is destroyed while the other side is leaving too


if __name__ == "__main__":
    main()
