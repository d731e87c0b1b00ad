"""How large the layers of a network get: what decides how many images it can see at once."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from rankshot.interruption import interrupts_later


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
