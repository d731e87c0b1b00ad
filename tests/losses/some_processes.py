"""One of several processes: `python some_processes.py RANK WORLD FILE`. Prints, as JSON, what every loss found there."""

import json
import sys

import torch
from torch import distributed, nn

from rankshot import losses
from rankshot.losses import CrossBatchMemory, GatheredLoss

torch.set_num_threads(1)
IMAGES, UPDATES = 13, 3
LOSSES = {
    "ranking": losses.RankingLoss,
    "paper": losses.RankingLoss.paper,
    "ssvm": lambda: losses.RankingLoss(framework="ssvm"),
    "negative": lambda: losses.RankingLoss(sign=-1, epsilon=0.5),
    "smooth-ap": losses.SmoothAPLoss,
    "nca": losses.NCALoss,
    "lmnn": losses.LMNNLoss,
    "triplet": losses.TripletLoss,
    "fast-ap": losses.FastAPLoss,
    "supcon": losses.SupConLoss,
    "siamese": lambda: losses.SiameseLoss(5),
    "classifier": lambda: losses.ClassifierLoss(5, 4),
}


def parts(world):
    """Uneven: 13 images on 2, 3 or 4 processes."""
    return {1: [13], 2: [9, 4], 3: [1, 5, 7], 4: [4, 2, 6, 1]}[world]


def batches():
    random = torch.Generator().manual_seed(0)
    for _ in range(UPDATES):
        chosen = torch.randperm(40, generator=random)[:IMAGES]
        yield torch.randn(IMAGES, 6, generator=random, dtype=torch.float64), chosen % 4, chosen


def found(name, memory, with_ids, rank, world, wrap=GatheredLoss):
    """Values and gradients of some updates, as DistributedDataParallel has them: of a layer, and of the loss's weights."""
    torch.manual_seed(0)
    loss = LOSSES[name]().double()
    if memory:
        loss = CrossBatchMemory(loss, 5, memory_size=20).double()
    layer, gathered = nn.Linear(6, 5, bias=False).double(), wrap(loss)
    weights = [*layer.parameters(), *loss.parameters()]
    start = sum(parts(world)[:rank])
    mine = slice(start, start + parts(world)[rank])
    results = []
    for images, labels, ids in batches():
        for weight in weights:
            weight.grad = None
        value = gathered(layer(images[mine]), labels[mine], **({"ids": ids[mine]} if with_ids else {}))
        value.backward()
        for weight in weights:
            if world > 1:
                distributed.all_reduce(weight.grad)
            weight.grad /= world
        results.append([value.item(), *(weight.grad.flatten().tolist() for weight in weights)])
    return results


def cases():
    for name in LOSSES:
        for memory, with_ids in ((False, False), (False, True), (True, True), (True, False)):
            if not memory or name != "classifier":
                yield name, memory, with_ids


class Unscaled(GatheredLoss):
    """Without the number of processes: what the tests must find."""

    def forward(self, embeddings, labels, **how):
        return super().forward(embeddings, labels, **how) / distributed.get_world_size()


def main():
    rank, world, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    results = {" ".join(map(str, case)): found(*case, rank, world) for case in cases()}
    results["unscaled"] = found("ranking", False, False, rank, world, Unscaled)
    errors = {}
    for what, arguments in {
        "dimensions": (torch.randn(4, 5 + rank), torch.arange(4), {}),
        "ids": (torch.randn(4, 5), torch.arange(4), {"ids": torch.arange(4)} if rank else {}),
        **{name: (torch.full((4, 5), torch.nan if rank else 1.0), torch.arange(4) % 2, {}) for name in LOSSES},
    }.items():
        try:
            GatheredLoss(LOSSES.get(what, losses.RankingLoss)())(*arguments[:2], **arguments[2])
        except ValueError as error:
            errors[what] = str(error)
    distributed.barrier()  # who leaves first takes the connection with it
    distributed.destroy_process_group()
    print(json.dumps({"found": results, "errors": errors}))  # last: who waits to be read must not be waited for


if __name__ == "__main__":
    main()
