"""Updates of a map."""

import torch

from rankshot.adaptation.learning import Adam


def test_adam_is_that_of_torch():
    torch.manual_seed(0)
    ours, theirs = (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_() for _ in range(2))
    target, left_alone = torch.randn(2, 3), torch.ones(2, requires_grad=True)
    optimiser, reference = Adam([ours, left_alone]), torch.optim.Adam([theirs], 0.1)
    for update in range(20):
        rate = 0.1 / (1 + update)
        ((ours - target) ** 4).sum().backward()
        optimiser.step(rate)
        reference.param_groups[0]["lr"] = rate
        reference.zero_grad()
        ((theirs - target) ** 4).sum().backward()
        reference.step()
    torch.testing.assert_close(ours, theirs)
    assert left_alone.tolist() == [1, 1]
