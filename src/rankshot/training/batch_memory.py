"""How much memory an update takes, and how many images a batch may have so that it fits."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import torch
from torch import Tensor, nn

from rankshot.interruption import interrupts_later

IMAGES = 2  # that it is tried with: batch norm wants more than one
PEAK = 1.3  # what an update takes at most, above what the backward pass needs of the forward pass
SHARE = 0.7  # of the memory that is free, that a batch may take
FREE = "MemAvailable:"


@interrupts_later()
def bytes_an_image(network: nn.Module, shape: tuple[int, int, int]) -> int:
    """What an update takes in float32 for each image (C, H, W), found without computing anything; 0: it cannot be found.

    >>> bytes_an_image(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), (3, 10, 10)) > 4 * 8 * 8 * 8
    True
    """
    kept: dict[int, Tensor] = {}  # by where they are stored: several layers may need the same numbers

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    try:
        shadow = copy.deepcopy(network).to("meta").train()
        weights = {tensor.untyped_storage()._cdata for tensor in (*shadow.parameters(), *shadow.buffers())}
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            outputs = shadow(torch.zeros(IMAGES, *shape, device="meta"))
    except (RuntimeError, ValueError, TypeError, NotImplementedError):  # of a network of one's own
        return 0
    sizes = [tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in weights]
    del outputs
    return int(PEAK * sum(sizes) / IMAGES)


def free_bytes(device: torch.device) -> int:
    """Memory that is free where the network learns; 0: it cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    system = next((1024 * int(line.split()[1]) for line in lines if line.startswith(FREE)), 0)
    if not system and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        system = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [system, *_free_in_container()]
    return min((limit for limit in limits if limit > 0), default=0)


def _free_in_container() -> list[int]:
    """A container may have less than its machine."""
    found = []
    for most, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            found.append(int(Path(most).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # there is none, or no limit
            continue
    return found
