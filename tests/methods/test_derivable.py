"""The layers whose derivatives are written out, against what torch derives from the same layers as one writes them down."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

from rankshot.methods.derivable import convolved, pooled
from rankshot.methods.learner import block

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


@pytest.mark.parametrize(("function", "shapes"), [(convolved, [(2, 2, 4, 5), (3, 2, 3, 3)]), (pooled, [(2, 2, 4, 5)])])
def test_derivatives(function, shapes):
    inputs = [drawn(*shape) for shape in shapes]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("is_known", [False, True], ids=["own statistics", "known statistics"])
@pytest.mark.parametrize("size", [(8, 8), (7, 5)])
def test_block(size, is_known):
    """Scales of both signs: where one is negative, the norm must not turn a smallest value into a largest."""
    inputs = drawn(3, 2, *size), drawn(5, 2, 3, 3), drawn(5), drawn(5)
    assert (inputs[2] < 0).any()
    assert (inputs[2] > 0).any()
    known = (torch.randn(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)) if is_known else None
    found = [function(*inputs, EPS, known) for function in (block, plain_block)]
    torch.testing.assert_close(*found)
    gradients = [torch.autograd.grad(result.square().sum(), inputs, create_graph=True) for result, _ in found]
    torch.testing.assert_close(*gradients)
    again = [torch.autograd.grad(sum(each.pow(3).sum() for each in each_of), inputs) for each_of in gradients]
    torch.testing.assert_close(*again)


@pytest.mark.parametrize("shared", [False, True], ids=["filters of each task", "filters of all tasks"])
def test_a_step_of_every_task_at_once(shared):
    """As MAML has it: the gradient of what a step of every task leads to."""
    images, filters, scale, shift = drawn(3, 4, 2, 6, 6), drawn(3, 5, 2, 3, 3), drawn(3, 5), drawn(3, 5)
    per_task = (0, None, None, None) if shared else 0
    weights = [each[0] if shared else each for each in (filters, scale, shift)]

    def after_a_step(function):
        def lost(weights, images):
            values, (mean, variance) = function(images, *weights, EPS)
            return values.square().mean() + mean.sin().sum() + variance.log().sum()

        def of_a_task(images, *weights):
            steps = grad(lost)(weights, images)
            return lost([each - 0.1 * step for each, step in zip(weights, steps, strict=True)], images)

        return torch.autograd.grad(vmap(of_a_task, per_task)(images, *weights).sum(), weights)

    torch.testing.assert_close(after_a_step(block), after_a_step(plain_block))
