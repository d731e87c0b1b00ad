"""First weights: by the seed and by nothing else."""

import torch
from small import small

from rankshot.preprocess import Preprocess
from rankshot.training.assembly import Objects, network_and_method


def first_weights(**settings):
    model, method = network_and_method(small(**settings), Preprocess(1, 28, 28), 10, Objects(), None)
    return torch.cat([each.flatten() for each in (*model.parameters(), *method.parameters())])


def test_the_seed_decides():
    torch.manual_seed(1)
    one = first_weights(method="siamese", seed=3)
    torch.manual_seed(2)  # torch's own generator does not
    assert torch.equal(one, first_weights(method="siamese", seed=3))
    assert not torch.equal(one, first_weights(method="siamese", seed=4))
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    first_weights(seed=3)
    assert torch.equal(torch.rand(2), expected)  # nor is it used up
