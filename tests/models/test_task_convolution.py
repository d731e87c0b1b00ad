"""Convolutions of several tasks at once against those of torch, task by task, with their derivatives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parent / "tasks_against_plain.py"


@pytest.mark.slow
def test_agrees_with_plain_convolutions_interpreted():
    pytest.importorskip("triton")
    script = [sys.executable, str(SCRIPT), "convolutions"]
    done = subprocess.run(script, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "agrees\n", done.stderr


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@needs_cuda
@pytest.mark.gpu
@pytest.mark.parametrize(("tf32", "tolerance"), [(False, 1e-4), (True, 2e-2)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shared", [False, True], ids=["filters of each task", "filters of all tasks"])
@pytest.mark.parametrize(
    "shape",  # tasks, images, channels, filters, height, width
    [
        (2, 3, 5, 6, 7, 9),
        (4, 5, 3, 32, 84, 84),
        (4, 5, 32, 32, 42, 42),
        (4, 5, 32, 32, 21, 21),
        (4, 5, 32, 32, 10, 10),
        (4, 20, 32, 32, 42, 42),
        (16, 20, 1, 64, 28, 28),
        (16, 20, 64, 64, 14, 14),
        (16, 20, 64, 64, 7, 7),
        (16, 20, 64, 64, 3, 3),
        (3, 2, 100, 130, 9, 11),
        (1, 1, 1, 1, 1, 1),
    ],
)
def test_agrees_with_plain_convolutions(shape, shared, stride, tf32, tolerance, monkeypatch):
    from models.tasks_against_plain import compare_convolutions

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    compare_convolutions(shape, "cuda", shared, tolerance, stride)
