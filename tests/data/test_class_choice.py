"""Classes of a batch: as they were always drawn by chance, and near each other where that is asked for."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankshot.data import ClassBatchSampler
from rankshot.data.class_choice import NearFirst, near_each_other, near_ones, nearest_classes
from rankshot.randomness import generator_for

LINE = torch.arange(20.0)[:, None]  # means of 20 classes: the nearest of k are k - 1, k + 1, k - 2, …
LABELS = torch.arange(200) // 10


def near_sampler(share, classes=6, **more):
    return ClassBatchSampler(LABELS, classes, 12, choose=near_each_other(LINE, classes, share), **more)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 1000), st.integers(2, 8))
def test_by_chance_the_batches_are_those_of_old(seed, number, classes):
    """Bit for bit: results that are recorded depend on it."""
    labels = torch.randint(12, (400,), generator=torch.Generator().manual_seed(seed % 7)) * 5 - 3
    _, labels_from_0, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    generator = generator_for(seed, number)
    chosen = torch.randperm(len(counts), generator=generator)[:classes]
    pool = torch.cat([(labels_from_0 == label).nonzero().squeeze(1) for label in chosen])
    expected = pool[torch.randperm(len(pool), generator=generator)[:20]]
    assert torch.equal(ClassBatchSampler(labels, classes, 20, seed=seed).draw(number), expected)


@pytest.mark.parametrize(("share", "near"), [(1.0, 5), (0.5, 3), (0.01, 1)])
def test_a_share_of_the_classes_is_near_the_first(share, near):
    choice, firsts = near_each_other(LINE, 6, share), []
    assert choice.near == near_ones(6, share) == near
    assert choice.neighbours.shape == (20, 2 * near)
    for number in range(2000):
        drawn = choice.draw(20, 6, generator_for(0, number)).tolist()
        assert len(set(drawn)) == 6
        first, *others = drawn
        nearest = sorted(set(range(20)) - {first}, key=lambda each: (abs(each - first), each))
        assert set(others[:near]) <= set(nearest[: 2 * near])
        firsts.append(first)
    counts = torch.tensor(firsts).bincount(minlength=20) / 2000
    assert (counts - 1 / 20).abs().max() < 5 * (0.05 * 0.95 / 2000) ** 0.5  # every class is as often the first


def test_near_ones_are_drawn_equally_often_and_the_others_by_chance():
    choice = near_each_other(LINE, 6, 0.5)
    of_first = [choice.draw(20, 6, generator_for(0, number)).tolist() for number in range(20_000)]
    of_first = [others for first, *others in of_first if first == 10]
    near = torch.tensor([others[:3] for others in of_first]).flatten().bincount(minlength=20) / len(of_first)
    assert set(near.nonzero().flatten().tolist()) == {7, 8, 9, 11, 12, 13}
    assert (near[near > 0] - 0.5).abs().max() < 5 * (0.25 / len(of_first)) ** 0.5
    assert len({each for others in of_first for each in others[3:]}) == 19


def test_batches_depend_on_seed_and_number_alone():
    first = list(itertools.islice(near_sampler(1.0, seed=3), 6))
    assert first == list(itertools.islice(near_sampler(1.0, seed=3), 6))
    assert first[4:] == list(itertools.islice(near_sampler(1.0, seed=3, start=4), 2))
    assert first != list(itertools.islice(near_sampler(1.0, seed=4), 6))
    before = torch.random.get_rng_state()
    near_sampler(0.5).draw(0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_processes_share_one_batch():
    whole = near_sampler(1.0).draw(5)
    shares = [near_sampler(1.0, rank=rank, world_size=3).draw(5) for rank in range(3)]
    assert [len(each) for each in shares] == [4] * 3
    assert sorted(torch.cat(shares).tolist()) == sorted(whole.tolist())


def test_where_there_are_hardly_more_classes_than_a_batch_has():
    choice = near_each_other(LINE[:4], 4, 1.0)
    assert choice.neighbours.shape == (4, 3)
    assert sorted(choice.draw(4, 4, generator_for(0, 0)).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [3, 1024])
def test_the_nearest_by_their_definition(rows, monkeypatch):
    monkeypatch.setattr("rankshot.data.class_choice.ROWS", rows)
    means = torch.randn(17, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1000
    distances = torch.cdist(means, means)
    distances.fill_diagonal_(torch.inf)
    assert torch.equal(nearest_classes(means, 6), distances.topk(6, largest=False).indices)
    assert nearest_classes(torch.zeros(3, 2), 2).tolist() == [[1, 2], [0, 2], [0, 1]]  # of equals the first


def test_of_other_classes():
    with pytest.raises(ValueError, match="the neighbours of 3 classes are known, and there are 20"):
        ClassBatchSampler(LABELS, 4, 12, choose=NearFirst(torch.zeros(3, 2, dtype=torch.long), 2)).draw(0)
    with pytest.raises(ValueError, match="the share of near classes must be a number from 0 to 1, got 2"):
        near_each_other(LINE, 4, 2)
