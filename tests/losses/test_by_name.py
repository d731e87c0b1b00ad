"""Losses by the names of the paper's tables."""

import pytest
import torch

from rankshot.losses import RankingLoss, SiameseLoss, by_name
from rankshot.losses.by_name import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_learns(name):
    embeddings = torch.randn(12, 5, requires_grad=True)
    by_name(name, dimensions=5)(embeddings, torch.arange(12) % 3).backward()
    assert embeddings.grad.abs().sum() > 0


def test_options_reach_the_loss():
    loss = by_name("map-ssvm", 5, metric="ndcg", epsilon=0.5, alpha=3.0)
    assert isinstance(loss, RankingLoss)
    assert loss.settings.metric.name == "ndcg"
    assert loss.settings[0] == "ssvm"
    assert loss.settings[2:] == (0.5, 3.0, 1)
    assert by_name("map-dlm", 5, sign=-1).settings[2:] == (1.0, 1.0, -1)
    assert isinstance(by_name("siamese", 5), SiameseLoss)
    assert by_name("smooth-ap", 5, temperature=0.2).temperature == 0.2
    smooth = by_name("map-dlm", 5, smoothing=0.1, samples=3)
    assert (smooth.smoothing, smooth.samples) == (0.1, 3)
    both = by_name("map-dlm", 5, alpha=1.0, epsilon=0.01, wide=0.5, wide_alpha=4.0)
    assert (both.near.settings.epsilon, both.far.settings.epsilon, both.far.settings.alpha) == (0.01, 1.0, 4.0)
    assert both.wide == 0.5


def test_bad_names_and_options():
    with pytest.raises(ValueError, match="unknown method 'map': there is 'map-dlm', 'map-ssvm', 'siamese', 'smooth-ap'"):
        by_name("map", 5)
    with pytest.raises(ValueError, match="siamese has no alpha: that is for 'map-dlm' and 'map-ssvm'"):
        by_name("siamese", 5, alpha=3.0)
    with pytest.raises(ValueError, match="smooth-ap has no smoothing"):
        by_name("smooth-ap", 5, smoothing=0.1)
    with pytest.raises(ValueError, match="map-dlm has no temperature: that is for 'smooth-ap'"):
        by_name("map-dlm", 5, temperature=0.1)
