"""Inside pytorch-metric-learning: its wrappers, its testers' calls, and two processes that equal one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pytorch_metric_learning import losses as theirs
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

from rankshot import losses, ranking
from rankshot.integrations.pml import adapt

SCRIPT = Path(__file__).with_name("two_processes.py")
KINDS = ["RankingLoss", "SmoothAPLoss", "NCALoss", "TripletLoss"]


def two_processes(tmp_path, *arguments):
    """What each of them printed."""
    command = [sys.executable, str(SCRIPT)]
    both = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "meeting"), *arguments], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    return [json.loads(text) for text in printed]


def one_process(kind):
    random = torch.Generator().manual_seed(0)
    images = torch.randn(16, 6, generator=random, dtype=torch.float64)
    labels, weights = torch.randint(4, (16,), generator=random), torch.randn(6, 5, generator=random, dtype=torch.float64)
    weights.requires_grad_()
    getattr(losses, kind)()(images @ weights, labels).backward()
    return weights.grad


@pytest.mark.parametrize("kind", ["RankingLoss", pytest.param("SmoothAPLoss", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_two_processes_have_the_gradient_of_one(tmp_path, kind):
    expected = one_process(kind)
    assert expected.abs().sum() > 0
    for found in two_processes(tmp_path, kind):
        torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected)


@pytest.mark.slow
def test_its_efficient_way_is_refused(tmp_path):
    for message in two_processes(tmp_path, "RankingLoss", "efficient"):
        assert "so give it efficient=False" in message


@pytest.mark.slow
def test_a_metric_over_two_processes(tmp_path):
    random = torch.Generator().manual_seed(0)
    scores, labels = (
        torch.randn(16, 6, generator=random, dtype=torch.float64).sum(-1),
        torch.randint(4, (16,), generator=random),
    )
    for arguments, counted in (((), slice(16)), (("alone",), slice(8))):
        found = ranking.RetrievalMetric("ap")
        found.update(scores[counted], labels[counted] < 2, labels[counted] % 3)
        (tmp_path / str(len(arguments))).mkdir()
        for value in two_processes(tmp_path / str(len(arguments)), "metric", *arguments):
            assert value == pytest.approx(found.compute().item())


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_one_of_their_losses(kind):
    torch.manual_seed(0)
    loss = getattr(losses, kind)()
    adapted = adapt(loss)
    embeddings, labels = torch.randn(12, 4, requires_grad=True), torch.arange(12) % 3
    references, ref_labels = torch.randn(9, 4), torch.arange(9) % 3
    torch.testing.assert_close(adapted(embeddings, labels), loss(embeddings, labels))
    expected = loss(embeddings, labels, ref_emb=references, ref_labels=ref_labels)
    torch.testing.assert_close(adapted(embeddings, labels, None, references, ref_labels), expected)
    both = theirs.MultipleLosses([adapted, theirs.ContrastiveLoss()], weights=[2.0, 1.0])(embeddings, labels)
    torch.testing.assert_close(both, 2 * loss(embeddings, labels) + theirs.ContrastiveLoss()(embeddings, labels))
    both.backward()
    assert embeddings.grad.isfinite().all()
    with pytest.warns(UserWarning, match="non-distributed"):
        assert DistributedLossWrapper(adapted)(embeddings, labels) == adapted(embeddings, labels)


def test_it_is_imported_when_it_is_asked_for():
    code = """
import sys, rankshot.integrations
assert "pytorch_metric_learning" not in sys.modules
assert rankshot.integrations.pml.adapt
try:
    rankshot.integrations.none
except AttributeError as error:
    assert str(error) == "module 'rankshot.integrations' has no attribute 'none'"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bad_input():
    with pytest.raises(ValueError, match="reduction must be 'mean' or 'sum'"):
        adapt(losses.RankingLoss(reduction="none"))
    with pytest.raises(TypeError, match="adapt takes a loss of"):
        adapt("map-dlm")
    pairs = tuple(torch.tensor([0]) for _ in range(4))
    with pytest.raises(ValueError, match=r"indices_tuple must be None.*Leave the miner out"):
        adapt(losses.RankingLoss())(torch.randn(4, 3), torch.arange(4) % 2, pairs)
