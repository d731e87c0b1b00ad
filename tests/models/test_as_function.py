"""Any network as a function of its weights, against Conv4's own and against plain torch."""

import copy

import pytest
import torch
from methods.made import made
from torch import nn
from torch.func import grad, vmap

from rankshot.methods.learner import Learner
from rankshot.models import Conv4, wrap
from rankshot.models.as_function import TaskNorm, as_function, prepare
from rankshot.preprocess import Preprocess


class Plain(nn.Module):
    """A Conv4 that has no function of its own."""

    def __init__(self, conv4):
        super().__init__()
        self.inner = nn.Sequential(*copy.deepcopy(list(conv4)))

    def forward(self, images):
        return self.inner(images)


def both():
    """Conv4, and the same without its own way; with weights by the names of each."""
    torch.manual_seed(0)
    conv4 = Conv4(2, 3).double()
    plain = Plain(conv4)
    for network in (conv4, plain):
        prepare(network)
    return conv4, plain


def renamed(weights):
    return {f"inner.{name}": each for name, each in weights.items()}


def test_it_equals_the_one_that_is_written_out():
    conv4, plain = both()
    weights, images = dict(conv4.named_parameters()), torch.rand(5, 2, 16, 16, dtype=torch.float64)
    one, found = as_function(conv4, weights, images)
    other, also = as_function(plain, renamed(weights), images)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(found, also)
    others = torch.rand(4, 2, 16, 16, dtype=torch.float64)
    known = [as_function(*each, others, found)[0] for each in ((conv4, weights), (plain, renamed(weights)))]
    torch.testing.assert_close(*known)
    assert not torch.allclose(known[0], as_function(conv4, weights, others)[0])


def test_second_derivatives_of_all_tasks_at_once():
    """What MAML needs: the gradient of what a step leads to, by weights that all tasks share."""
    conv4, plain = both()
    images = torch.rand(3, 5, 2, 16, 16, dtype=torch.float64)

    def gradients(network, rename):
        weights = {name: each.detach() for name, each in conv4.named_parameters()}

        def after_a_step(weights, images):
            def loss_of(weights):
                return as_function(network, rename(weights), images)[0].square().sum()

            steps = grad(loss_of)(weights)
            return loss_of({name: each - 0.01 * steps[name] for name, each in weights.items()})

        return grad(lambda weights: vmap(after_a_step, (None, 0))(weights, images).sum())(weights)

    torch.testing.assert_close(gradients(conv4, lambda weights: weights), gradients(plain, renamed), rtol=1e-6, atol=1e-9)


def test_the_norm_is_torch_s():
    norm = nn.BatchNorm2d(3).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    values = torch.randn(4, 3, 5, 6, dtype=torch.float64)
    torch.testing.assert_close(TaskNorm(norm)(values), norm.train()(values))
    without = nn.BatchNorm2d(3, affine=False).double()
    torch.testing.assert_close(TaskNorm(without)(values), without.train()(values))


@pytest.mark.parametrize("name", ["maml", "meta-lstm"])
def test_a_network_of_one_s_own_learns_tasks(name):
    """Its loss falls on one batch, seen again and again."""
    torch.manual_seed(0)
    trunk = nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    )
    network = wrap(trunk, preprocess=Preprocess(1, 16, 16))
    assert Learner(copy.deepcopy(network), way=3).head.in_features == 24
    settings = {"tasks": 2, "steps": 2} if name == "maml" else {"steps": 2}
    _, method = made(name, batch_size=18, **settings)
    model = method.network(network)
    images = torch.rand(18, 1, 16, 16)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(25):
        optimiser.zero_grad()
        loss, _ = method.learn(model, images, torch.zeros(18))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert model.answer(images[:3], torch.arange(3), images[3:7]).shape == (4, 3)
