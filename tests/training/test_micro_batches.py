"""A batch in parts has the gradient of the whole."""

import pytest
import torch
from torch import nn

from rankshot.losses import RankingLoss, SiameseLoss
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.training.micro_batches import backward_in_micro_batches

LOSSES = {
    "dlm": RankingLoss,
    "ssvm": lambda: RankingLoss(framework="ssvm"),
    "siamese": lambda: SiameseLoss(3).double(),
}


def gradients(network, *others):
    return [parameter.grad.clone() for each in (network, *others) for parameter in each.parameters()]


@pytest.fixture
def batch():
    random = torch.Generator().manual_seed(0)
    return torch.rand(20, 1, 16, 16, dtype=torch.float64, generator=random), torch.arange(20) % 4


@pytest.mark.parametrize("micro_batch", [1, 7, 20])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_is_that_of_the_whole(batch, micro_batch, loss):
    images, labels = batch
    torch.manual_seed(0)
    loss = LOSSES[loss]()
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 3)).double()
    expected = loss(network(images), labels)
    expected.backward()
    wanted = gradients(network, loss)
    network.zero_grad()
    loss.zero_grad()
    value, embeddings = backward_in_micro_batches(network, images, lambda embedded: loss(embedded, labels), micro_batch)
    torch.testing.assert_close(value, expected.detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(embeddings, network(images).detach(), rtol=0, atol=1e-12)
    for found, want in zip(gradients(network, loss), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-9, atol=1e-9)


def test_batch_norm_with_frozen_statistics_is_as_with_the_whole_batch(batch):
    images, labels = batch
    network = build({"name": "conv4"}, Preprocess(1, 16, 16)).double().eval()
    RankingLoss()(network(images), labels).backward()
    wanted = gradients(network)
    network.zero_grad()
    backward_in_micro_batches(network, images, lambda embedded: RankingLoss()(embedded, labels), 6)
    for found, want in zip(gradients(network), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-9, atol=1e-9)


def test_batch_norm_takes_in_each_micro_batch_once(batch):
    images, labels = batch
    network = build({"name": "conv4"}, Preprocess(1, 16, 16)).double().train()
    other = build({"name": "conv4"}, Preprocess(1, 16, 16)).double().train()
    other.load_state_dict(network.state_dict())
    backward_in_micro_batches(network, images, lambda embedded: RankingLoss()(embedded, labels), 5)
    for part in images.split(5):
        other(part)
    for name, buffer in network.named_buffers():
        torch.testing.assert_close(buffer, dict(other.named_buffers())[name])


def test_dropout_is_the_same_in_both_passes(batch):
    images, labels = batch
    seen = []
    dropout = nn.Dropout(0.5)
    dropout.register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))
    network = nn.Sequential(nn.Flatten(), dropout, nn.Linear(256, 3)).double().train()
    torch.manual_seed(1)
    backward_in_micro_batches(network, images, lambda embedded: RankingLoss()(embedded, labels), 10)
    first, second, again, once_more = seen
    assert torch.equal(first, again)
    assert torch.equal(second, once_more)
    assert not torch.equal(first == 0, second == 0)
    after = torch.rand(1)
    torch.manual_seed(1)
    for part in images.split(10):
        network(part)
    assert torch.equal(torch.rand(1), after)  # as if it had been embedded once


def test_what_does_not_fit(batch):
    images, labels = batch
    network = nn.Sequential(nn.Flatten(), nn.Linear(256, 3)).double()
    with pytest.raises(ValueError, match="micro_batch must be no more than the 20 images of the batch, got 21"):
        backward_in_micro_batches(network, images, lambda embedded: RankingLoss()(embedded, labels), 21)
    with pytest.raises(ValueError, match="micro_batch must be"):
        backward_in_micro_batches(network, images, lambda embedded: RankingLoss()(embedded, labels), 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": [1, 2]}, "images must be a tensor of one at least, got list"),
        ({"images": torch.zeros(0, 3)}, r"images must be a tensor of one at least, got a tensor \(0, 3\)"),
        ({"network": None}, "network and loss must be functions, got NoneType and function"),
        ({"loss": lambda embedded: 1.0}, "the loss must be one number that depends on the embeddings, .* got float"),
        ({"loss": lambda embedded: embedded.sum(1)}, r"the loss must be one number .* got a tensor \(6,\)"),
        ({"loss": lambda embedded: embedded.detach().sum()}, "the loss must be one number that depends on"),
    ],
)
def test_what_it_does_not_take(given, message):
    usual = {"network": torch.nn.Linear(3, 2), "images": torch.rand(6, 3), "loss": lambda embedded: embedded.sum()}
    with pytest.raises((TypeError, ValueError), match=message):
        backward_in_micro_batches(**{**usual, **given}, micro_batch=2)
