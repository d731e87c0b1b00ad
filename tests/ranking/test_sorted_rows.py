"""The kernels that rank on a GPU, against sorted sides and their solvers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankshot.losses import RankingLoss
from rankshot.ranking.objectives import settings
from rankshot.ranking.sorted_rows import MOST_IN_PROGRAMME, Ranking, fits

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.mark.parametrize("how_many", ["few", pytest.param("some", marks=pytest.mark.slow)])
def test_agrees_with_solvers_interpreted(how_many):
    """The interpreter takes its time for each of them."""
    pytest.importorskip("triton")
    script = [sys.executable, str(Path(__file__).parent / "rows_against_solvers.py"), how_many]
    done = subprocess.run(script, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "agrees\n", done.stderr


def rankings(**options):
    return [Ranking(settings(**options), 0.0, 1.0)]


def test_it_is_for_a_gpu():
    assert not fits(torch.zeros(4, 8), rankings(), 8)


@needs_cuda
@pytest.mark.gpu
class TestOnAGPU:
    def test_agrees_with_solvers(self):
        from ranking.rows_against_solvers import compare_many, compare_some

        compare_some("cuda")
        compare_many("cuda")

    def test_what_does_not_fit(self):
        small = torch.zeros(4, 8, device="cuda")
        assert fits(small, rankings(), 2**20)
        assert not fits(small.double(), rankings(), 8)
        assert fits(small, rankings(sign=-1), MOST_IN_PROGRAMME)
        assert not fits(small, rankings(sign=-1), MOST_IN_PROGRAMME + 1)
        assert fits(small, [*rankings(), *rankings(sign=-1)], MOST_IN_PROGRAMME)
        assert not fits(small, [*rankings(), *rankings(sign=-1)], MOST_IN_PROGRAMME + 1)
        assert fits(small, rankings(metric="precision@3"), MOST_IN_PROGRAMME)
        assert not fits(small, [*rankings(), *rankings(metric="auc")], 8)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"alpha": 1.0, "epsilon": 0.01, "smoothing": 0.02},
            {"framework": "ssvm"},
            {"sign": -1, "epsilon": 1.0},
            {"sign": 0, "epsilon": 1.0, "alpha": 10.0},
        ],
        ids=str,
    )
    def test_the_loss_is_that_of_the_cpu(self, options):
        embeddings = torch.randn(96, 16)
        labels = torch.randint(9, (96,))
        found = []
        for device in ("cpu", "cuda"):
            own = embeddings.to(device, copy=True).requires_grad_()
            RankingLoss(**options)(own, labels.to(device)).backward()
            found.append(own.grad.cpu())
        assert (found[0] - found[1]).norm() < 2e-2 * found[0].norm()  # a ranking or two may differ in rounding

    def test_a_graph_outlives_what_is_kept(self):
        from rankshot.ranking import sorted_rows

        embeddings, labels = torch.randn(64, 8, device="cuda"), torch.randint(6, (64,), device="cuda")
        loss = RankingLoss(smoothing=0.01)
        expected = loss(embeddings, labels).item()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = loss(embeddings, labels)
        sizes = [each.shape for kept in sorted_rows._kept.values() for each in kept]
        sorted_rows._kept.clear()
        poison = [torch.full(size, torch.nan, device="cuda") for size in sizes for _ in range(50)]
        graph.replay()
        assert poison
        assert value.item() == pytest.approx(expected, rel=1e-4)
