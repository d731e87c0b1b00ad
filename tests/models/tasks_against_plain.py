"""Run by a process of its own where there is no GPU: Triton then interprets its kernels, which it decides when imported."""

import sys

import pytest
import torch
from torch import nn
from torch.func import grad, jacrev, vmap

from rankshot.models import task_norm_kernels
from rankshot.models.conv4_as_function import kernel_block
from rankshot.models.task_convolution import convolved
from rankshot.models.task_norm import norm_pool_relu

EPS = 1e-5
CONVOLUTIONS = [  # tasks, images, channels, filters, height, width
    (2, 3, 1, 5, 7, 9),
    (2, 2, 3, 32, 6, 5),
    (3, 2, 5, 6, 5, 4),
    (2, 1, 32, 20, 4, 5),
    (2, 2, 17, 3, 4, 5),  # few of both, seen from the other side
    (1, 1, 70, 65, 3, 3),
]
NORMS = [(2, 3, 5, 7, 9), (2, 2, 16, 6, 5), (3, 2, 6, 5, 4), (1, 2, 70, 3, 3), (2, 4, 32, 2, 2)]  # tasks, images, C, H, W


def plain_convolved(values, filters, stride=1):
    return nn.functional.conv2d(values, filters, stride=stride, padding=1)


def plain_norm(values, scale, shift, eps, pool=2):
    variance, mean = torch.var_mean(values, (0, 2, 3), correction=0)
    normal = (values - mean[:, None, None]) * (variance + eps).rsqrt()[:, None, None]
    normal = normal * scale[:, None, None] + shift[:, None, None]
    return nn.functional.relu(nn.functional.max_pool2d(normal, pool)), (mean.detach(), variance.detach())


def plain_block(values, filters, scale, shift, eps, stride=1, pool=2):
    return plain_norm(plain_convolved(values, filters, stride), scale, shift, eps, pool)


def first(function, *settings):
    """What gives statistics too, without."""
    return lambda *inputs: function(*inputs, EPS, *settings)[0]


def derivatives(function, inputs, shared):
    """Values, and first to third derivatives, of a step of every task, as in MAML. All inputs but the first are weights."""
    dimensions = (0, *[None if shared else 0] * (len(inputs) - 1))
    inputs = [each.clone().requires_grad_() for each in inputs]

    def loss_of(*inputs):
        results = function(*inputs)
        target = torch.arange(results.numel(), device=results.device).view(results.shape).sin()
        return ((results - target).square() * results).mean() * 10

    def after_a_step(*inputs):
        steps = grad(loss_of, argnums=tuple(range(len(inputs))))(*inputs)
        return loss_of(*(each - 0.1 * step for each, step in zip(inputs, steps, strict=True)))

    outputs = vmap(function, in_dims=dimensions)(*inputs)
    losses = vmap(after_a_step, in_dims=dimensions)(*inputs)
    once = torch.autograd.grad(losses.sum(), inputs, retain_graph=True)
    again = torch.autograd.grad(losses.sum(), inputs, create_graph=True)
    twice = torch.autograd.grad(sum(each.square().sum() for each in again), inputs)
    names = ["outputs", "losses", *(f"{kind} {k}" for kind in ("once", "again", "twice") for k in range(len(inputs)))]
    return dict(zip(names, [outputs, losses, *once, *again, *twice], strict=True))


def compare(ours, plain, inputs, shared, tolerance):
    """Against the plain layers in float64."""
    got = derivatives(ours, inputs, shared)
    want = derivatives(plain, [each.double() for each in inputs], shared)
    for name, expected in want.items():
        difference = (got[name].double() - expected).norm() / expected.norm().clamp_min(1e-9)
        assert difference < tolerance, f"{name} of {[tuple(each.shape) for each in inputs]}: {difference:.1e}"


def drawn(device, *shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(device) for shape in shapes]


def compare_convolutions(shape, device, shared, tolerance, stride=1):
    tasks, images, channels, filters, *size = shape
    own = () if shared else (tasks,)
    inputs = drawn(device, (tasks, images, channels, *size), (*own, filters, channels, 3, 3))
    ours, plain = (lambda *inputs, by=by: by(*inputs, stride) for by in (convolved, plain_convolved))
    compare(ours, plain, [inputs[0], inputs[1] / (3 * channels**0.5)], shared, tolerance)


def compare_norms(shape, device, shared, tolerance, pool=2):
    """Far from 0, where naive variances lose their digits. Scales of both signs: negative ones turn the order round."""
    tasks, images, channels, *size = shape
    own = () if shared else (tasks,)
    values, scale, shift = drawn(device, (tasks, images, channels, *size), (*own, channels), (*own, channels))
    compare(first(norm_pool_relu, pool), first(plain_norm, pool), [values + 20, scale, shift], shared, tolerance)
    own = scale.flatten()[:channels], shift.flatten()[:channels]
    found = vmap(lambda each: norm_pool_relu(each, *own, EPS, pool)[1])(values)
    variance, mean = torch.var_mean(values, (1, 3, 4), correction=0)
    torch.testing.assert_close(found, (mean, variance), rtol=1e-4, atol=1e-4)


def compare_blocks(shape, device, shared, tolerance, stride=1, pool=2):
    tasks, images, channels, filters, *size = shape
    own = () if shared else (tasks,)
    weights = (*own, filters, channels, 3, 3), (*own, filters), (*own, filters)
    inputs = drawn(device, (tasks, images, channels, *size), *weights)
    ours, plain = (first(block, stride, pool) for block in (kernel_block, plain_block))
    compare(ours, plain, inputs, shared, tolerance)


def nan_stays(device):
    values = torch.rand(2, 3, 4, 4, device=device)
    values[0, 1, 2, 3] = torch.nan
    found = norm_pool_relu(values, torch.ones(3, device=device), torch.ones(3, device=device), EPS)[0]
    assert found[:, 1].isnan().all()
    assert not found[:, [0, 2]].isnan().any()


def compare_layouts(device):
    """Weights that lie as views do: shared by expanding, with tasks in the last axis, or with gaps; and `jacrev`, where the
    tasks are those of the gradient alone."""
    values, filters, scale, shift = drawn(device, (3, 2, 2, 6, 5), (3, 4, 2, 3, 3), (3, 4), (3, 4))
    maps = nn.functional.conv2d(values.flatten(0, 1), filters[0], padding=1).unflatten(0, (3, 2))
    for function, plain, inputs, dimensions in (
        (norm_pool_relu, plain_norm, (maps, scale.T, shift.T), (0, 1, 1)),
        (norm_pool_relu, plain_norm, (maps, scale[0, :1].expand(4), shift.flatten()[::3]), (0, None, None)),
        (kernel_block, plain_block, (values, filters.movedim(0, 4), scale.T, shift[0]), (0, 4, 1, None)),
    ):
        found, wanted = (vmap(first(each), in_dims=dimensions)(*inputs) for each in (function, plain))
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    one = values[0], filters[0], scale[0], shift[0]
    found, wanted = (jacrev(first(each), argnums=(0, 1, 2, 3))(*one) for each in (kernel_block, plain_block))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def other_precisions_are_refused(device):
    """They would read the memory as what it is not."""
    values = torch.rand(2, 4, 4, 4, device=device, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"compute in float32, got torch\.float64"):
        norm_pool_relu(values, *values.new_ones(2, 4), EPS)
    with pytest.raises(TypeError, match=r"compute in float32, got torch\.float64"):
        convolved(values, values.new_ones(3, 4, 3, 3))


def same_twice(shape, device):
    """To the last bit."""
    tasks, images, channels, filters, *size = shape
    weights = (tasks, filters, channels, 3, 3), (tasks, filters), (tasks, filters)
    inputs = drawn(device, (tasks, images, channels, *size), *weights)
    one, other = (derivatives(first(kernel_block), inputs, False) for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def interpret_convolutions():
    for index, shape in enumerate(CONVOLUTIONS):
        for stride in (1, 2)[: 2 if index < 3 else 1]:
            compare_convolutions(shape, "cpu", index % 2 == 0, 1e-4, stride)


def interpret_norms():
    task_norm_kernels.TILE, task_norm_kernels.ENOUGH = 1024, 6  # so that each takes several turns, and adds up several sums
    for index, shape in enumerate(NORMS):
        for pool in (2, 1)[: 2 if index < 2 else 1]:
            compare_norms(shape, "cpu", index % 2 == 0, 1e-3, pool)
    for stride, pool in ((1, 2), (2, 1)):
        compare_blocks((2, 2, 3, 6, 7, 6), "cpu", False, 1e-3, stride, pool)
    nan_stays("cpu")
    compare_layouts("cpu")
    other_precisions_are_refused("cpu")
    same_twice((2, 2, 3, 6, 5, 4), "cpu")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"convolutions": interpret_convolutions, "norms": interpret_norms}[sys.argv[1]]()
    print("agrees")
