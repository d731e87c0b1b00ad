"""The same parts give the same numbers, on every device; other parts give others."""

import torch

from rankshot.randomness import generator_for


def test_it_depends_on_its_parts_alone(device):
    def numbers(*parts):
        return torch.rand(4, generator=generator_for(*parts, device=device), device=device).tolist()

    torch.manual_seed(1)
    first = numbers(0, "noise", 7)
    torch.manual_seed(2)
    assert numbers(0, "noise", 7) == first
    assert (
        len({tuple(numbers(*parts)) for parts in [(0, "noise", 7), (1, "noise", 7), (0, "batch", 7), (0, "noise", 8)]}) == 4
    )
