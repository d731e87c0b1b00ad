"""Processes that torchrun has started; NCCL, as far as one GPU can try it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankshot.processes import TOLD_BY_TORCHRUN, is_restart, joined, may_restart, processes_here

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


@pytest.mark.slow
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


def test_variables_of_torchrun_that_are_not_all_there(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(ValueError, match=r"WORLD_SIZE is 2, but LOCAL_RANK, .* is not set: start it by torchrun"), joined():
        pass
    monkeypatch.setenv("RANKSHOT_ALONE", "1")
    with joined():
        assert processes_here() == 1


@pytest.mark.parametrize("seconds", ["abc", "-1", "0", "nan"])
def test_a_patience_that_is_none(seconds, monkeypatch):
    for name in TOLD_BY_TORCHRUN:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("RANKSHOT_PATIENCE", seconds)
    with (
        pytest.raises(ValueError, match=f"RANKSHOT_PATIENCE must be seconds, from 1 to 1,000,000, got '{seconds}'"),
        joined(),
    ):
        pass


def test_who_has_lost_its_parent():
    """A process whose parent ends: it is somebody else's child then."""
    code = (
        "import os, time; from rankshot import processes; processes._parent = os.getppid()\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    processes._parent = os.getppid(); before = processes.is_orphan(); os.write(write, b'x'); time.sleep(1)\n"
        "    print(before, processes.is_orphan(), flush=True); os._exit(0)\n"
        "os.read(read, 1); os._exit(0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout.split() == ["False", "True"]
