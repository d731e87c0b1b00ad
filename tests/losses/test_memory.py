"""RankingLoss keeps to its memory budget, and never makes a table of all pairs."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rankshot.losses import RankingLoss


class LargestTensor(TorchDispatchMode):
    """Remembers the most elements that any operation wrote."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, torch.Tensor):
                self.elements = max(self.elements, each.numel())
        return result


class AliveTensors(TorchDispatchMode):
    """The most bytes of results of operations that were alive at once; views count once."""

    def __init__(self):
        super().__init__()
        self.peak, self.now, self.seen = 0, 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                if storage._cdata not in self.seen:
                    self.seen[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._gone, storage._cdata)
        self.peak = max(self.peak, self.now)
        return result

    def _gone(self, key):
        self.now -= self.seen.pop(key)


@pytest.mark.parametrize("classes", [75, 16, 2])
@pytest.mark.parametrize("options", [{}, {"reduction": "none"}, {"sign": -1}, {"metric": "precision@5"}], ids=str)
def test_no_table_of_all_pairs_is_ever_alive(classes, options):
    size, budget = (200, 2**18) if "sign" not in options and "metric" not in options else (100, 2**17)
    embeddings = torch.randn(size, 4).requires_grad_()
    labels = torch.arange(size) % classes
    with LargestTensor() as largest:
        RankingLoss.paper(**options, memory_budget=budget)(embeddings, labels).sum().backward()
    assert largest.elements < size * size / 8
    with LargestTensor() as largest:
        RankingLoss.paper(**options)(embeddings, labels).sum().backward()
    assert largest.elements <= size * (size + 1)  # and where one chunk takes all, never a third dimension


def test_smoothing_has_no_dimension_more_than_its_shifts():
    embeddings, labels = torch.randn(60, 4).requires_grad_(), torch.arange(60) % 12
    with LargestTensor() as largest:
        RankingLoss(smoothing_samples=4)(embeddings, labels).backward()
    assert largest.elements <= 4 * 60 * 61


@pytest.mark.parametrize("options", [{}, {"sign": -1}, {"metric": "precision@5"}], ids=str)
def test_memory_stays_within_the_budget(options):
    """All that is alive at once, with classes of half the batch, where rankings are the longest."""
    embeddings, labels = torch.randn(120, 4).requires_grad_(), torch.arange(120) % 2
    for budget in (2**18, 2**20):
        with AliveTensors() as alive:
            make = RankingLoss.paper if options else RankingLoss  # the dynamic programme is slow enough without smoothing
            make(**options, memory_budget=budget)(embeddings, labels).backward()
        assert alive.peak < 1.5 * budget
        if budget == 2**20:
            assert alive.peak > 2**18  # a larger budget is used
