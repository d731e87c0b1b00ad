"""Random numbers that depend on what they are for, and on nothing that happened before."""

from __future__ import annotations

import random

import torch


def seed_for(*parts: object) -> int:
    """A seed that depends on `parts`, such as the seed of a run and the number of an update."""
    return random.Random("/".join(map(str, parts))).getrandbits(63)


def generator_for(*parts: object, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator seeded by `parts`, such as a seed and the number of a batch; the same parts give the same numbers.

    >>> torch.rand((), generator=generator_for(0, "batch", 7)) == torch.rand((), generator=generator_for(0, "batch", 7))
    tensor(True)
    """
    return torch.Generator(device).manual_seed(seed_for(*parts))
