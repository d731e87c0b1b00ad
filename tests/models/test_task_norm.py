"""Batch norm, pooling and ReLU of several tasks at once against torch's layers, task by task, with their derivatives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from methods.made import made

from rankshot.models.conv4_as_function import has_kernels, kernel_block

SCRIPT = Path(__file__).parent / "tasks_against_plain.py"


@pytest.mark.slow
def test_agrees_with_plain_layers_interpreted():
    pytest.importorskip("triton")
    script = [sys.executable, str(SCRIPT), "norms"]
    done = subprocess.run(script, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "agrees\n", done.stderr


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize("pool", [2, 1])
@pytest.mark.parametrize("shared", [False, True], ids=["weights of each task", "weights of all tasks"])
@pytest.mark.parametrize(
    "shape",  # tasks, images, channels, height, width
    [(2, 3, 5, 7, 9), (4, 5, 32, 84, 84), (4, 5, 32, 21, 21), (16, 20, 64, 28, 28), (16, 20, 64, 3, 3), (2, 3, 100, 9, 8)],
)
def test_agrees_with_plain_layers(shape, shared, pool):
    """But where two values of a pool are nearly equal, or a result is nearly 0: there a last bit decides which learns."""
    from models.tasks_against_plain import compare_norms, nan_stays

    compare_norms(shape, "cuda", shared, 1e-2, pool)
    nan_stays("cuda")


@needs_cuda
@pytest.mark.gpu
def test_layouts(monkeypatch):
    from models.tasks_against_plain import compare_layouts, other_precisions_are_refused

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    compare_layouts("cuda")
    other_precisions_are_refused("cuda")


def test_nothing_to_compute_is_left_to_torch(monkeypatch):
    """Of no images there is no kernel to start, and of one row no 2 x 2, but a window of 1."""
    monkeypatch.setattr("rankshot.models.conv4_as_function.kernels_work", lambda device: True)
    filters = torch.ones(3, 1, 3, 3)
    assert not has_kernels(torch.empty(0, 1, 28, 28), filters)
    assert not has_kernels(torch.empty(2, 1, 1, 28), filters)
    assert has_kernels(torch.empty(2, 1, 1, 28), filters, least=1)
    assert not has_kernels(torch.empty(2, 1, 28, 28).double(), filters)
    assert has_kernels(torch.empty(2, 1, 28, 28), filters)


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("shape", [(4, 5, 3, 32, 84, 84), (16, 20, 64, 64, 14, 14)])
def test_gives_the_same_to_the_last_bit(shape, tf32, monkeypatch):
    from models.tasks_against_plain import same_twice

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    same_twice(shape, "cuda")


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize(("network", "module"), [("conv4", "conv4_as_function"), ("conv4-strided", "conv4_strided")])
def test_maml_takes_it_and_learns_the_same(network, module, monkeypatch):
    """In two of three updates at least: see above."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    taken = []
    monkeypatch.setattr(
        f"rankshot.models.{module}.kernel_block",
        lambda *inputs, **more: taken.append(1) or kernel_block(*inputs, **more),
    )
    differences = []
    for seed in range(3):
        found = []
        for has_triton in (True, False):
            monkeypatch.setattr("rankshot.models.conv4_as_function.kernels_work", lambda device, has=has_triton: has)
            torch.manual_seed(seed)
            embedder = {"name": network, "in_channels": 1, "filters": 8}
            model, method = made("maml", batch_size=18, tasks=2, steps=2, embedder=embedder)
            images = torch.rand(18, 1, 28, 28)
            taken.clear()
            loss = method.cuda().learn(model.cuda(), images.cuda(), None)[0]
            loss.backward()
            assert bool(taken) == has_triton
            found.append(torch.cat([loss.detach().view(1), *(each.grad.flatten() for each in model.parameters())]))
        differences.append(float((found[0] - found[1]).norm() / found[1].norm()))
    assert sorted(differences)[1] < 1e-3, differences
