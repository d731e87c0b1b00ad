"""Several processes, each with a part of a batch, give the loss and the gradient of one that has all of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from losses.some_processes import LOSSES, cases, found

from rankshot.losses import CrossBatchMemory, GatheredLoss, RankingLoss

SCRIPT = Path(__file__).parent / "some_processes.py"


@pytest.fixture(scope="module", params=[2, *(pytest.param(world, marks=pytest.mark.slow) for world in (3, 4))])
def processes(request, tmp_path_factory):
    """What each of them printed."""
    file = tmp_path_factory.mktemp("gloo") / "meeting"
    began = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(request.param), str(file)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(request.param)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in began]
    assert all(process.returncode == 0 for process in began)
    return [json.loads(output) for output in outputs]


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_loss_and_gradient_are_those_of_one_process(case, processes):
    expected = found(*case, rank=0, world=1, wrap=lambda loss: loss)
    for output in processes:
        for here, there in zip(output["found"][" ".join(map(str, case))], expected, strict=True):
            for one, other in zip(here, there, strict=True):
                torch.testing.assert_close(torch.tensor(one).double(), torch.tensor(other).double(), rtol=1e-9, atol=1e-9)


def test_it_would_be_seen_if_the_number_of_processes_were_left_out(processes):
    (expected, *_) = found("ranking", False, False, rank=0, world=1, wrap=lambda loss: loss)
    for output in processes:
        (_, gradient), *_ = output["found"]["unscaled"]
        assert torch.tensor(gradient).double().mul(len(processes)).allclose(torch.tensor(expected[1]).double())
        assert not torch.tensor(gradient).double().allclose(torch.tensor(expected[1]).double(), rtol=1e-3)


def test_bad_parts_are_refused_on_every_process(processes):
    for output in processes:
        told = output["errors"]["dimensions"]
        assert told.startswith("embeddings must have the same dimensions on all processes, got [5")
        assert output["errors"]["ids"] == "give ids on all processes, or on none"
        for name in LOSSES:  # NaN on the second process
            assert output["errors"][name].split(" must be finite")[0] in ("embeddings", "ref_emb"), name


def test_one_process_is_the_loss_itself():
    embeddings, labels = torch.randn(8, 4), torch.arange(8) % 2
    assert GatheredLoss(RankingLoss())(embeddings, labels) == RankingLoss()(embeddings, labels)
    memory = CrossBatchMemory(RankingLoss(), 4, 16)
    GatheredLoss(memory)(embeddings, labels, ids=torch.arange(8))
    assert len(memory) == 8


def test_what_it_does_not_take():
    with pytest.raises(ValueError, match="its reduction must be 'mean', got 'sum'"):
        GatheredLoss(RankingLoss(reduction="sum"))
    with pytest.raises(TypeError, match="loss must be one of rankshot's, got Linear"):
        GatheredLoss(torch.nn.Linear(2, 2))
