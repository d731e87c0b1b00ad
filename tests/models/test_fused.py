"""Batch norm, pooling and ReLU at once against the three one by one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from rankshot.models import Conv4

HERE = Path(__file__).parent


@pytest.mark.parametrize("script", ["fused_against_plain.py", "first_block_against_plain.py"])
def test_agrees_with_plain_layers_interpreted(script):
    pytest.importorskip("triton")
    script = [sys.executable, str(HERE / script)]
    done = subprocess.run(script, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "agrees\n", done.stderr


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("shape", [(3, 5, 7, 9), (128, 64, 28, 28), (16, 64, 21, 21), (2, 100, 84, 84)])
def test_agrees_with_plain_layers(shape, dtype, tolerance):
    from models.fused_against_plain import compare, compare_known, nan_stays, twice_is_refused

    compare(shape, "cuda", dtype, tolerance)
    compare_known(shape, "cuda", dtype, tolerance)
    nan_stays("cuda")
    twice_is_refused("cuda")


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3, 1, 7, 9, 5), (128, 3, 84, 84, 64), (128, 1, 28, 28, 64), (4, 3, 32, 31, 128)])
def test_the_first_block_agrees_with_plain_layers(shape):
    from models.first_block_against_plain import compare, nan_stays, twice_is_refused

    compare(shape, "cuda", torch.bfloat16, 1e-2)
    compare(shape, "cuda", torch.float32, 1e-3)
    nan_stays("cuda")
    twice_is_refused("cuda")


def test_what_the_first_block_is_for():
    first = pytest.importorskip("rankshot.models.fused_first_block")
    images, convolution = torch.rand(2, 3, 16, 16), nn.Conv2d(3, 64, 3)
    assert not first.is_first(images, convolution)  # in float32 there are better ways
    with torch.autocast("cpu", torch.bfloat16):
        assert first.is_first(images, convolution)
        assert not first.is_first(images.clone().requires_grad_(), convolution)
        assert not first.is_first(torch.rand(2, 64, 16, 16), nn.Conv2d(64, 64, 3))
        assert not first.is_first(images, nn.Conv2d(3, 256, 3))


def test_what_it_is_for():
    fused = pytest.importorskip("rankshot.models.fused")
    assert fused.fits(nn.BatchNorm2d(64))
    for other in (nn.BatchNorm2d(64).eval(), nn.BatchNorm2d(64, affine=False), nn.BatchNorm2d(257)):
        assert not fused.fits(other)
    norm = nn.BatchNorm2d(64).eval()
    with torch.no_grad():
        assert fused.fits(norm)  # nobody asks for a gradient
        norm.forward = lambda values: values  # as `evaluate` normalises group by group
        assert not fused.fits(norm)
    assert not fused.fits(nn.BatchNorm2d(64, momentum=None))
    assert not fused.fits(nn.BatchNorm2d(64, track_running_stats=False))


def test_other_norms_take_the_plain_path():
    model = nn.SyncBatchNorm.convert_sync_batchnorm(Conv4(filters=4)).eval()
    assert model(torch.rand(2, 1, 16, 16)).shape == (2, 4)


@needs_cuda
@pytest.mark.gpu
def test_a_frozen_norm_stays_as_it_is():
    model = Conv4(filters=4).cuda()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    before = {name: each.clone() for name, each in model.named_buffers()}
    model(torch.rand(4, 1, 28, 28, device="cuda"))
    assert all(torch.equal(each, before[name]) for name, each in model.named_buffers())


@needs_cuda
@pytest.mark.gpu
def test_conv4_takes_it_in_training_and_gives_the_same(monkeypatch):
    """For two of three networks at least: where two values of a pool are nearly equal, a last bit decides which learns."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    differences = torch.tensor([relative_differences(seed, monkeypatch) for seed in range(3)])
    assert (differences.median(0).values < 1e-3).all(), differences


def relative_differences(seed, monkeypatch):
    """Of the embeddings, and of the gradient of the first layer."""
    torch.manual_seed(seed)
    model = Conv4(3).cuda()
    images = torch.rand(32, 3, 84, 84, device="cuda")
    found = {}
    for has_triton in (True, False):
        monkeypatch.setattr("rankshot.models.conv4.kernels_work", lambda device, has=has_triton: has)
        model.zero_grad()
        output = model(images)
        output.square().sum().backward()
        nodes, names = [output.grad_fn], set()
        while nodes:
            node = nodes.pop()
            names.add(type(node).__name__)
            nodes += [each for each, _ in node.next_functions if each is not None]
        assert ("_NormPoolReLUBackward" in names) == has_triton
        found[has_triton] = output.detach(), model[0][0].weight.grad.clone()
    return [float((one - other).norm() / other.norm()) for one, other in zip(found[True], found[False], strict=True)]
