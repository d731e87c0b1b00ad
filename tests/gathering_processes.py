"""One of several processes: `python gathering_processes.py RANK WORLD PORT`. Prints, as JSON, what it was told."""

import json
import os
import sys
import time

import torch

from rankshot import gathering
from rankshot.gathering import (
    any_of,
    average_,
    copy_from_first_,
    failing_together,
    part_of,
    rank,
    told_by_all,
    told_by_first,
    whole_of,
    world_size,
)
from rankshot.processes import first_of_machine_first, joined, processes_here

torch.set_num_threads(1)
IMAGES = 7


def failure(of):
    """What is raised here, where the process `of` fails; None fails in all."""
    try:
        with failing_together():
            if of in (None, rank()):
                raise OSError("no room")
    except (OSError, ValueError) as error:
        return [type(error).__name__, str(error)]
    return None


def main(rank_here, world, port):
    about = {"RANK": rank_here, "LOCAL_RANK": rank_here, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "GROUP_RANK": 0}
    about |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in about.items()})
    found = {}
    with joined():
        found["who"] = [rank(), world_size(), processes_here(), gathering.is_first()]
        numbers = torch.arange(2.0 * IMAGES).view(IMAGES, 2).requires_grad_()
        whole = whole_of(part_of(numbers) ** 2, IMAGES)
        (whole * torch.arange(IMAGES)[:, None]).sum().backward()
        found["whole"], found["gradient"] = whole.tolist(), part_of(numbers.grad).tolist()
        tensors = [torch.full((2,), float(rank())), torch.full((1, 3), 10.0 * rank())]
        average_(tensors)
        found["average"] = [tensor.tolist() for tensor in tensors]
        number = torch.tensor(rank() + 5)
        copy_from_first_([number])
        found["first"] = number.item()
        found["any"] = any_of(rank() == 1, False, True)
        found["told"] = [
            told_by_all({"rank": rank(), "name": "é\udcff" * rank()}),
            told_by_first([1, None]),
            told_by_first(rank()),
        ]
        found["failures"] = [failure(1), failure(0), failure(None)]
        began = time.monotonic()
        with first_of_machine_first():
            if rank() == 0:
                time.sleep(0.5)
        found["waited"] = time.monotonic() - began >= 0.4
        told_by_all(None)  # the first one leaves last: the others find one another by it
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
