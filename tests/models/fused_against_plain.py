"""Run by a process of its own where there is no GPU: Triton then interprets its kernels, which it decides when imported."""

import copy
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.func import functional_call, jvp, vmap

from rankshot.models import Conv4, fused
from rankshot.models.fused import norm_pool_relu

SHAPES = [(3, 5, 7, 9), (2, 64, 8, 8), (4, 3, 21, 20), (2, 6, 2, 2)]  # odd edges are cut off by the pooling


def compare(shape, device, dtype, tolerance):
    """Values, gradients and running averages against the plain layers in float64."""
    generator = torch.Generator().manual_seed(0)
    values = 3 * torch.randn(shape, generator=generator) + 50  # far from 0, where naive variances lose their digits
    values = values.to(device, dtype).contiguous(memory_format=torch.channels_last)
    norm = nn.BatchNorm2d(shape[1]).to(device)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(shape[1], generator=generator))  # negative weights turn the order round
        norm.bias.copy_(torch.randn(shape[1], generator=generator))
    plain = copy.deepcopy(norm).double()
    ours, exact = values.clone().requires_grad_(), values.double().requires_grad_()
    got = norm_pool_relu(ours, norm)
    want = nn.functional.relu(nn.functional.max_pool2d(plain(exact), 2))
    upstream = torch.randn(want.shape, generator=generator).to(device, dtype)
    got.backward(upstream)
    want.backward(upstream.double())
    pairs = {"output": (got, want), "by values": (ours.grad, exact.grad)}
    pairs |= {f"by {name}": (getattr(norm, name).grad, getattr(plain, name).grad) for name in ("weight", "bias")}
    pairs |= {name: (each, plain.get_buffer(name)) for name, each in norm.named_buffers()}
    for name, (one, other) in pairs.items():
        difference = (one.double() - other.double()).norm() / other.double().norm()
        assert difference < tolerance, f"{name} of {shape}: {difference:.1e}"


def compare_known(shape, device, dtype, tolerance):
    """By running averages, without a gradient."""
    generator = torch.Generator().manual_seed(1)
    values = (3 * torch.randn(shape, generator=generator) + 50).to(device, dtype)
    norm = nn.BatchNorm2d(shape[1]).to(device).eval()
    for tensor in norm.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(shape[1], generator=generator) - 0.3)  # some weights are negative
    norm.running_mean += 50
    norm.running_var.abs_()
    before = {name: tensor.clone() for name, tensor in norm.state_dict().items()}
    with torch.no_grad():
        got = norm_pool_relu(values, norm)
        want = nn.functional.relu(nn.functional.max_pool2d(copy.deepcopy(norm).double()(values.double()), 2))
    difference = (got.double() - want).norm() / want.norm()
    assert difference < tolerance, f"{shape}: {difference:.1e}"
    assert all(torch.equal(tensor, before[name]) for name, tensor in norm.state_dict().items())


def nan_stays(device):
    values = torch.rand(2, 3, 4, 4, device=device).contiguous(memory_format=torch.channels_last)
    values[0, 1, 2, 3] = torch.nan
    assert norm_pool_relu(values, nn.BatchNorm2d(3).to(device))[:, 1].isnan().all()


def twice_is_refused(device):
    values = torch.rand(2, 3, 4, 4, device=device, requires_grad=True)
    output = norm_pool_relu(values, nn.BatchNorm2d(3).to(device)).sum()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.grad(output, values, create_graph=True)


def as_plain_layers(device):
    """What else may be done with a network that answers: all of it as if it had no kernels."""
    network, images = Conv4(3, 8).to(device).eval(), torch.rand(2, 3, 16, 16, device=device)
    seen = []
    several = {name: torch.stack([tensor, tensor + tensor]) for name, tensor in network.state_dict().items()}

    def hooked():
        handle = network[0][1].register_forward_hook(lambda *_: seen.append(1))
        network(images)
        handle.remove()
        return torch.tensor(len(seen))

    def ask():
        seen.clear()
        return {
            "plainly": network(images),
            "half": copy.deepcopy(network).half()(images.half()),
            "jvp": jvp(network, (images,), (torch.ones_like(images),))[1],
            "vmap": vmap(lambda state: functional_call(network, state, (images,)))(several),
            "export": torch.export.export(network, (images,)).module()(images),
            "trace": torch.jit.trace(network, images, check_trace=False)(images.flip(0)),
            "hook": hooked(),
        }

    with torch.no_grad(), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit's, of itself
        found = {}
        for has_triton in (True, False):
            patch.setattr("rankshot.models.conv4.kernels_work", lambda _, has=has_triton: has)
            assert network[1]._may_be_fused(images) == has_triton
            found[has_triton] = ask()
    for name, wanted in found[False].items():
        torch.testing.assert_close(found[True][name], wanted, rtol=1e-3, atol=1e-3, msg=lambda text, n=name: f"{n}: {text}")


if __name__ == "__main__":
    fused.PROGRAMS = 3  # so that each takes several turns
    for shape in SHAPES:
        compare(shape, "cpu", torch.float32, 1e-4)
        compare_known(shape, "cpu", torch.float32, 1e-4)
    nan_stays("cpu")
    twice_is_refused("cpu")
    as_plain_layers("cpu")
    print("agrees", *sys.argv[1:])
