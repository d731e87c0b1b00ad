"""Batch norm, pooling and ReLU at once against the three one by one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankshot.models import Conv4

HERE = Path(__file__).parent


def test_agrees_with_plain_layers_interpreted():
    pytest.importorskip("triton")
    script = [sys.executable, str(HERE / "fused_against_plain.py")]
    done = subprocess.run(script, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "agrees\n", done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("shape", [(3, 5, 7, 9), (128, 64, 28, 28), (16, 64, 21, 21), (2, 100, 84, 84)])
def test_agrees_with_plain_layers(shape, dtype, tolerance):
    sys.path.insert(0, str(HERE))
    from fused_against_plain import compare

    compare(shape, "cuda", dtype, tolerance)


@pytest.mark.gpu
def test_conv4_takes_it_in_training_and_gives_the_same(monkeypatch):
    model = Conv4(3).cuda()
    images = torch.rand(32, 3, 84, 84, device="cuda")
    outputs = []
    for has_triton in (True, False):
        monkeypatch.setattr("rankshot.models.conv4._has_triton", lambda has=has_triton: has)
        model.zero_grad()
        outputs.append(model(images))
        outputs[-1].square().sum().backward()
        outputs.append(model[0][0].weight.grad.clone())
    kinds = [type(each.grad_fn).__name__ for each in outputs[::2]]
    torch.testing.assert_close(outputs[0], outputs[2], rtol=1e-3, atol=1e-3)
    assert (outputs[1] - outputs[3]).norm() < 1e-2 * outputs[3].norm()
    assert len(kinds) == 2
