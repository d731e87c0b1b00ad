"""Batch norm over several processes: training on them is training on one."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models.norm_processes import trained
from torch import nn

from rankshot.models import Conv4, gather_batch_norm

SCRIPT = Path(__file__).parent / "norm_processes.py"


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def processes(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gloo")
    (folder / "to").mkdir()
    began = [
        subprocess.Popen([sys.executable, str(SCRIPT), str(rank), str(request.param), folder / "meeting", folder / "to"])
        for rank in range(request.param)
    ]
    assert [process.wait(300) for process in began] == [0] * request.param
    return [torch.load(folder / "to" / str(rank)) for rank in range(request.param)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.slow
def test_twenty_updates_are_those_of_one_process(processes, dtype, tolerance):
    expected = trained(dtype, rank=0, world=1)
    for found in processes:
        for name, tensor in expected.items():
            torch.testing.assert_close(found[str(dtype)][name], tensor, rtol=0, atol=tolerance)


def test_without_it_they_are_not(processes):
    expected = trained(torch.float64, rank=0, world=1)
    assert any((processes[0]["alone"][name] - tensor).abs().max() > 1e-3 for name, tensor in expected.items())


def test_alone_it_is_as_torch_has_it():
    torch.manual_seed(0)
    images = torch.rand(6, 1, 16, 16)
    one, other = Conv4(1, filters=4), Conv4(1, filters=4)
    other.load_state_dict(one.state_dict())
    gather_batch_norm(other)
    for mode in (True, False):
        assert torch.equal(one.train(mode)(images), other.train(mode)(images))
    assert one.state_dict().keys() == other.state_dict().keys()
    layers = gather_batch_norm(nn.ModuleList([nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.BatchNorm3d(3), nn.LayerNorm(3)]))
    kinds = ["GatheredBatchNorm1d", "GatheredBatchNorm2d", "GatheredBatchNorm3d", "LayerNorm"]
    assert [type(layer).__name__ for layer in layers] == kinds
