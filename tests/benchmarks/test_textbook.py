"""The baseline of the benchmarks is right, so that being faster than it means something."""

import numpy as np
import pytest
import torch

from benchmarks import textbook
from rankshot import ranking


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_textbook_gives_the_same_rankings(epsilon):
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(10, 40, generator=random, dtype=torch.float64)
    relevance = torch.rand(10, 40, generator=random) < 0.3
    valid = torch.rand(10, 40, generator=random) < 0.9
    theirs = textbook.loss_augmented_ranking(scores.numpy(), relevance.numpy(), valid.numpy(), epsilon)
    ours = ranking.loss_augmented_ranking(scores, relevance, valid, epsilon=epsilon)
    np.testing.assert_array_equal(ours, theirs)
