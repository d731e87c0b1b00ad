"""Run by a process of its own where there is no GPU: Triton then interprets its kernels, which it decides when imported."""

import copy
import sys

import pytest
import torch
from torch import nn

from rankshot.models import fused_first_block
from rankshot.models.fused_first_block import first_block

SHAPES = [(3, 1, 7, 9, 5), (2, 3, 8, 8, 64), (4, 3, 9, 10, 3), (5, 1, 28, 28, 20), (2, 2, 2, 2, 6)]  # B, C, H, W, filters


def compare(shape, device, dtype, tolerance):
    """Values, gradients and running averages against the plain layers in float64."""
    *sizes, filters = shape
    generator = torch.Generator().manual_seed(0)
    smooth = torch.rand(sizes[0], sizes[1], 1, 1, generator=generator)  # neighbours are alike, as in photographs
    images = (0.9 * smooth + 0.1 * torch.rand(sizes, generator=generator)).to(device)
    convolution = nn.Conv2d(sizes[1], filters, 3, padding=1, bias=False).to(device)
    norm = nn.BatchNorm2d(filters).to(device)
    with torch.no_grad():
        convolution.weight.copy_(0.3 * torch.randn(convolution.weight.shape, generator=generator))
        norm.weight.copy_(torch.randn(filters, generator=generator))  # negative weights turn the order round
        norm.bias.copy_(torch.randn(filters, generator=generator))
    exact_convolution, exact_norm = copy.deepcopy(convolution).to(dtype).double(), copy.deepcopy(norm).double()
    got = first_block(images, convolution, norm, dtype)
    want = nn.functional.relu(nn.functional.max_pool2d(exact_norm(exact_convolution(images.to(dtype).double())), 2))
    upstream = torch.randn(want.shape, generator=generator).to(device, dtype)
    got.backward(upstream)
    want.backward(upstream.double())
    pairs = {"output": (got, want), "by filters": (convolution.weight.grad, exact_convolution.weight.grad)}
    pairs |= {f"by {name}": (getattr(norm, name).grad, getattr(exact_norm, name).grad) for name in ("weight", "bias")}
    pairs |= {name: (each, exact_norm.get_buffer(name)) for name, each in norm.named_buffers()}
    norm.eval(), exact_norm.eval()
    with torch.no_grad():  # by the running averages
        known = exact_norm(exact_convolution(images.to(dtype).double()))
        pairs |= {"afterwards": (first_block(images, convolution, norm, dtype), nn.functional.max_pool2d(known, 2).relu())}
    for name, (one, other) in pairs.items():
        difference = (one.double() - other.double()).norm() / other.double().norm()
        assert difference < tolerance, f"{name} of {shape}: {difference:.1e}"


def nan_stays(device):
    images = torch.rand(2, 3, 4, 4, device=device)
    images[0, 1, 2, 3] = torch.nan
    layers = nn.Conv2d(3, 4, 3, padding=1, bias=False).to(device), nn.BatchNorm2d(4).to(device)
    assert first_block(images, *layers, torch.float32).isnan().all()


def twice_is_refused(device):
    convolution = nn.Conv2d(3, 4, 3, padding=1, bias=False).to(device)
    output = first_block(torch.rand(2, 3, 4, 4, device=device), convolution, nn.BatchNorm2d(4).to(device), torch.float32)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.grad(output.sum(), convolution.weight, create_graph=True)


if __name__ == "__main__":
    fused_first_block.PROGRAMS = 3  # so that each takes several turns
    for shape in SHAPES:
        compare(shape, "cpu", torch.float32, 1e-4)
    nan_stays("cpu")
    twice_is_refused("cpu")
    print("agrees", *sys.argv[1:])
