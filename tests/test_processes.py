"""Processes that torchrun has started; NCCL, as far as one GPU can try it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankshot.processes import is_restart, joined, may_restart, processes_here

SCRIPT = Path(__file__).parent / "nccl_process.py"


def test_without_torchrun_nothing_is_joined():
    with joined():
        assert not torch.distributed.is_initialized()
        assert processes_here() == 1


@pytest.mark.parametrize(("count", "restarted"), [("0", False), ("2", True)])
def test_what_torchrun_tells(count, restarted, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", count)
    assert is_restart() == may_restart() == restarted


def test_nobody_there_is_told(monkeypatch):
    """A process that waits for another one, which does not come."""
    about = {"RANK": 1, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": 1}
    about |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 9, "RANKSHOT_PATIENCE": 2}
    environment = {**os.environ, **{name: str(value) for name, value in about.items()}}
    command = [sys.executable, "-m", "rankshot", "evaluate", "conv4-omniglot"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "rankshot: process 1 finds no other at 127.0.0.1:9" in ended.stderr


@pytest.mark.gpu
def test_one_process_by_nccl():
    """Every exchange happens, with oneself: two processes on one GPU are refused by NCCL."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    ended = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "nccl: the same"
