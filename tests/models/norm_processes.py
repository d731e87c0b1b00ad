"""One of several processes: `python norm_processes.py RANK WORLD FILE TO`. Trains Conv4 on its part of every batch."""

import sys

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from rankshot.losses import GatheredLoss, SupConLoss
from rankshot.models import Conv4, gather_batch_norm

torch.set_num_threads(1)
UPDATES, IMAGES = 20, 24
PARTS = {1: [24], 2: [15, 9], 3: [2, 12, 10]}  # of every batch


def trained(dtype, rank, world, gathers=True):
    """The weights and running averages after some updates of Adam."""
    torch.manual_seed(0)
    model = Conv4(1, filters=6).to(dtype).train()
    network = model
    if world > 1:
        network = DistributedDataParallel(gather_batch_norm(model) if gathers else model)
    loss_of = GatheredLoss(SupConLoss())  # smooth: no ranking that turns over by a rounding
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    random = torch.Generator().manual_seed(0)
    start = sum(PARTS[world][:rank])
    mine = slice(start, start + PARTS[world][rank])
    for _ in range(UPDATES):
        images = torch.rand(IMAGES, 1, 16, 16, generator=random, dtype=torch.float64).to(dtype)
        labels = torch.randint(4, (IMAGES,), generator=random)
        optimiser.zero_grad()
        loss_of(network(images[mine]), labels[mine]).backward()
        optimiser.step()
    return model.state_dict()


def main():
    rank, world, file, to = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    found = {str(dtype): trained(dtype, rank, world) for dtype in (torch.float32, torch.float64)}
    found["alone"] = trained(torch.float64, rank, world, gathers=False)
    distributed.barrier()
    distributed.destroy_process_group()
    torch.save(found, f"{to}/{rank}")


if __name__ == "__main__":
    main()
