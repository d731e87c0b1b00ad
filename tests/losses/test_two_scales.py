"""Two objectives at once are the sum of two."""

import math

import pytest
import torch

from rankshot.losses import RankingLoss, TwoScalesLoss


@pytest.mark.parametrize("framework", ["dlm", "ssvm"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_it_is_the_sum(framework, reduction, device):
    random = torch.Generator().manual_seed(0)
    embeddings = torch.randn(30, 5, generator=random, dtype=torch.float64).to(device)
    labels = torch.randint(4, (30,), generator=random).to(device)
    near = RankingLoss("ndcg", framework, 0.01, 1.0, reduction=reduction)
    far = RankingLoss("ndcg", framework, 1.0, 5.0, reduction=reduction)
    found = []
    for loss in (TwoScalesLoss(near, 0.3, 5.0), lambda *batch: near(*batch) + 0.3 * far(*batch)):
        own = embeddings.clone().requires_grad_()
        value = loss(own[:20], labels[:20], own[20:], labels[20:])
        value.sum().backward()
        found.append((value.detach(), own.grad))
    torch.testing.assert_close(*found)


def test_every_pair_takes_part(device):
    """Far-apart pairs have no gradient with a small epsilon, and have one here."""
    points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], device=device, requires_grad=True)
    labels = torch.tensor([0, 0, 1], device=device)
    near = RankingLoss(epsilon=0.001, alpha=1.0)
    near(points, labels).backward()
    assert not points.grad.any()
    TwoScalesLoss(near)(points, labels).backward()
    assert points.grad.any()


@pytest.mark.parametrize("wide", [0.0, -1.0, math.inf, math.nan])
def test_bad_weights(wide):
    with pytest.raises(ValueError, match="wide must be above 0, got"):
        TwoScalesLoss(RankingLoss(), wide)
