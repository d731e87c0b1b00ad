"""The siamese baseline against its definition, pair by pair."""

import itertools

import pytest
import torch

from rankshot import ranking
from rankshot.losses import SiameseLoss


def test_every_pair_is_asked_once(device):
    torch.manual_seed(0)
    loss = SiameseLoss(5).double().to(device)
    embeddings = torch.randn(9, 5, dtype=torch.float64, device=device)
    labels = torch.tensor([0, 1, 0, 2, 1, 1, 0, 2, 5], device=device)
    pairs = []
    for i, j in itertools.combinations(range(9), 2):
        difference = (embeddings[i] / embeddings[i].norm() - embeddings[j] / embeddings[j].norm()).abs()
        probabilities = loss.head(difference).softmax(-1)
        pairs.append(-probabilities[int(labels[i] == labels[j])].log())
    torch.testing.assert_close(loss(embeddings, labels), torch.stack(pairs).mean())


def test_it_learns(device):
    torch.manual_seed(0)
    labels = (torch.arange(40) % 5).to(device)
    points = torch.randn(40, 8, device=device, requires_grad=True)
    loss = SiameseLoss(8).to(device)
    optimiser = torch.optim.Adam([points, *loss.parameters()], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        value = loss(points, labels)
        value.backward()
        optimiser.step()
    unit = torch.nn.functional.normalize(points.detach(), dim=-1)
    assert value < 0.1
    assert ranking.average_precision(unit @ unit.T, *ranking.relevance_of(labels)).mean() > 0.9


def test_the_gradient_repeats_itself(device):
    """Bit for bit, at the size of a real batch: rows are summed in a fixed order, whatever threads do."""
    torch.manual_seed(0)
    loss, labels = SiameseLoss(256).to(device), (torch.arange(128) % 16).to(device)
    embeddings = torch.randn(128, 256, device=device, requires_grad=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, *others = (torch.autograd.grad(loss(embeddings, labels), embeddings)[0] for _ in range(8))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(first, other) for other in others)


def test_half_precision_under_autocast(device):
    loss = SiameseLoss(4).to(device)
    embeddings = torch.randn(6, 4, device=device, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        value = loss(embeddings, torch.arange(6) % 2)
    assert value.dtype == torch.float32
    value.backward()
    assert embeddings.grad.isfinite().all()


def test_bad_input():
    loss = SiameseLoss(4)
    with pytest.raises(ValueError, match="made for 4 dimensions, got embeddings of 3"):
        loss(torch.randn(5, 3), torch.arange(5))
    with pytest.raises(ValueError, match="two images, got a batch of 1"):
        loss(torch.randn(1, 4), torch.arange(1))
    with pytest.raises(ValueError, match="labels must be one for each of 5 embeddings, got 4"):
        loss(torch.randn(5, 4), torch.arange(4))


def test_threads_add_up_in_a_fixed_order():
    torch.manual_seed(0)
    loss, embeddings, labels = SiameseLoss(64), torch.randn(128, 64, requires_grad=True), torch.arange(128) % 16
    torch.set_num_threads(2)
    try:
        gradients = {torch.autograd.grad(loss(embeddings, labels), embeddings)[0].numpy().tobytes() for _ in range(10)}
    finally:
        torch.set_num_threads(1)
    assert len(gradients) == 1
