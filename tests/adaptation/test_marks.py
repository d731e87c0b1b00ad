"""This is like that, and not like this."""

import numpy as np
import pytest
import torch

from rankshot.adaptation.marks import MarkedBatch, batch_of, marked_loss, marks_of
from rankshot.losses import RankingLoss
from rankshot.ranking import dlm
from rankshot.vectors import unit_vectors


def table(marks):
    return {(int(row), int(other)): bool(alike) for row, other, alike in zip(*marks, strict=True)}


def test_pairs_count_both_ways_and_triples_one_way():
    marks = marks_of([[0, 1]], [[2, 3]], [[4, 5, 6]], 7)
    assert table(marks) == {(0, 1): True, (1, 0): True, (2, 3): False, (3, 2): False, (4, 5): True, (4, 6): False}
    assert marks.anchors.tolist() == [0, 1, 4]  # others know of nothing that they are like
    assert marks_of(None, None, None, 7) is None
    assert table(marks_of([[0, 1], [1, 0], [0, 1]], None, None, 2)) == {(0, 1): True, (1, 0): True}


def test_a_row_ranks_what_it_was_marked_with():
    batch = batch_of(marks_of(None, None, [[0, 1, 2], [0, 3, 2]], 5), 5, 0, 0)
    assert batch.anchors.tolist() == [0]
    items = batch.items.tolist()
    assert {items[place] for place in batch.relevant[0].nonzero()[:, 0]} == {1, 3}
    assert {items[place] for place in batch.irrelevant[0].nonzero()[:, 0]} == {2}  # of 4 nothing was said


def test_who_knows_of_nothing_unlike_ranks_the_others_below():
    batch = batch_of(marks_of([[0, 1]], None, None, 6), 6, 0, 0)
    row = batch.anchors.tolist().index(0)
    items = np.array(batch.items.tolist())
    assert items[batch.relevant[row].numpy()].tolist() == [1]
    assert set(items[batch.irrelevant[row].numpy()]) == set(items) - {0, 1}


def test_labels_count_as_well_and_a_mark_comes_first():
    labels = torch.tensor([0, 0, 0, 1, -1])
    marks = marks_of([[0, 3]], [[0, 1]], None, 5)  # against the labels, both
    batch = batch_of(marks, 5, 0, 0, labels)
    row, items = batch.anchors.tolist().index(0), np.array(batch.items.tolist())
    relevant, irrelevant = (set(items[side[row].numpy()]) for side in (batch.relevant, batch.irrelevant))
    assert 3 in relevant
    assert 1 in irrelevant
    assert (2 in relevant) == (2 in items)
    assert 4 not in relevant | irrelevant  # nothing is known of it


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_is_that_of_the_ranking(seed):
    """Against `ranking.dlm` with the same masks, value and gradient."""
    generator = torch.Generator().manual_seed(seed)
    anchors, items = (torch.randn(n, 3, generator=generator, dtype=torch.float64).requires_grad_() for n in (4, 9))
    sides = torch.randint(3, (4, 9), generator=generator)
    sides[:, 0], sides[:, 1] = 1, 2
    batch = MarkedBatch(torch.arange(4), torch.arange(9), sides == 1, sides == 2)
    loss = RankingLoss(epsilon=0.5, alpha=1.0, smoothing=0.0, coarse_weight=0.0)
    value = marked_loss(anchors, items, batch, loss)
    found = torch.autograd.grad(value, [anchors, items])
    scores = unit_vectors(anchors) @ unit_vectors(items).T
    values, weights = dlm(scores.detach(), batch.relevant, sides > 0, epsilon=0.5, alpha=1.0)
    torch.testing.assert_close(value.detach(), values.mean())
    expected = torch.autograd.grad((weights * scores).sum() / 4, [anchors, items])
    torch.testing.assert_close(found, expected)
