"""A block of layers, both ways that it is computed, against the same as one writes it down, which torch derives."""

import pytest
import torch
from torch import nn
from torch.func import grad, vmap

from rankshot.models.conv4_as_function import block, fused_block

EPS = 1e-5


def plain_block(values, filters, scale, shift, eps, known=None):
    values = nn.functional.conv2d(values, filters, padding=1)
    variance, mean = torch.var_mean(values, (0, 2, 3), correction=0)
    by_mean, by_variance = (mean, variance) if known is None else known
    normal = (values - by_mean[:, None, None]) / (by_variance + eps).sqrt()[:, None, None]
    normal = normal * scale[:, None, None] + shift[:, None, None]
    return nn.functional.relu(nn.functional.max_pool2d(normal, 2)), (mean, variance)


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("is_known", [False, True], ids=["own statistics", "known statistics"])
@pytest.mark.parametrize("size", [(8, 8), (7, 5)])
@pytest.mark.parametrize("layer", [block, fused_block])
def test_values_and_gradients(layer, size, is_known):
    """Scales of both signs: where one is negative, the norm must not turn a smallest value into a largest."""
    inputs = drawn(3, 2, *size), drawn(5, 2, 3, 3), drawn(5), drawn(5)
    assert set(inputs[2].sign().tolist()) == {-1, 1}
    known = (torch.randn(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)) if is_known else None
    found = [each(*inputs, EPS, known) for each in (layer, plain_block)]
    torch.testing.assert_close(*found)
    gradients = [torch.autograd.grad(result.square().sum(), inputs, create_graph=True) for result, _ in found]
    torch.testing.assert_close(*gradients)
    again = [torch.autograd.grad(sum(each.pow(3).sum() for each in each_of), inputs) for each_of in gradients]
    torch.testing.assert_close(*again)


def of_all_tasks(function, shared):
    """A function of images and weights, for three tasks at once, whose weights are their own or shared; and its weights."""
    images, *weights = drawn(3, 4, 2, 6, 6), drawn(3, 5, 2, 3, 3), drawn(3, 5), drawn(3, 5)
    weights = [each[0] if shared else each for each in weights]
    return vmap(function, (0, None, None, None) if shared else 0)(images, *weights), weights


SHARED = pytest.mark.parametrize("shared", [False, True], ids=["weights of each task", "weights of all tasks"])


@SHARED
def test_the_gradient_of_what_a_step_leads_to(shared):
    """As MAML has it."""

    def gradient(layer):
        def loss_of(weights, images):
            values, (mean, variance) = layer(images, *weights, EPS)
            return values.square().mean() + mean.sin().sum() + variance.log().sum()

        def after_a_step(images, *weights):
            steps = grad(loss_of)(weights, images)
            return loss_of([each - 0.1 * step for each, step in zip(weights, steps, strict=True)], images)

        torch.manual_seed(1)
        losses, weights = of_all_tasks(after_a_step, shared)
        return torch.autograd.grad(losses.sum(), weights)

    torch.testing.assert_close(gradient(block), gradient(plain_block))


@SHARED
@pytest.mark.parametrize("layer", [block, fused_block])
def test_the_step_of_each_task(layer, shared):
    """As the Meta-Learner LSTM is told it."""

    def steps(layer):
        torch.manual_seed(1)
        loss_of = lambda weights, images: layer(images, *weights, EPS)[0].square().mean()  # noqa: E731
        return of_all_tasks(lambda images, *weights: grad(loss_of)(weights, images), shared)[0]

    torch.testing.assert_close(steps(layer), steps(plain_block))
