"""How large the layers of a network get: what decides how many images it can see at once."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from rankshot.interruption import interrupts_later

# Numbers that the largest layer may have for all images that are embedded together. On a CPU 16 MiB: beyond the caches, and
# from 32 MiB on the C library gets them from the system anew each time, an image takes up to twice as long. A GPU takes
# hardly longer for many images than for one.
NUMBERS_AT_ONCE = {"cpu": 2**22, "cuda": 2**28}


def images_at_once(numbers: int, shape: tuple[int, int, int], device: torch.device) -> int:
    """How many images (C, H, W) to embed together, by how many numbers the largest layer has for one; 0: nobody knows."""
    channels, height, width = shape
    numbers = max(numbers or 64 * height * width, 4 * channels * height * width)  # the images take memory too
    return max(1, NUMBERS_AT_ONCE.get(device.type, NUMBERS_AT_ONCE["cpu"]) // numbers)


@interrupts_later()
def largest_layer(network: nn.Module, shape: tuple[int, int, int]) -> int:
    """How many numbers the largest output within a network has for one image (C, H, W), found without computing it.

    0 where that cannot be done.

    >>> largest_layer(nn.Conv2d(3, 8, 3), (3, 10, 10))
    512
    """
    sizes = [0]

    def note(module: nn.Module, inputs: object, output: object) -> None:
        sizes.append(output.numel() if isinstance(output, Tensor) else 0)

    try:
        shadow = copy.deepcopy(network).to("meta").eval()
        for module in shadow.modules():
            module.register_forward_hook(note)
        with torch.no_grad():
            shadow(torch.zeros(1, *shape, device="meta"))
    except (RuntimeError, ValueError, TypeError, NotImplementedError):  # of a network of one's own
        return 0
    return max(sizes)
