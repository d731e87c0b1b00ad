"""Batches of rows."""

import torch

from rankshot.adaptation.drawing import MOST_CLASSES, RowBatches


def test_classes_as_uneven_as_they_come():
    labels = torch.repeat_interleave(torch.arange(4), torch.tensor([1, 3, 2000, 50]))
    batch = RowBatches(labels, 64, 0).draw(0)
    counts = torch.bincount(labels[batch])
    assert counts[:2].tolist() == [1, 3]
    assert counts[3] == 16
    assert 12 <= counts[2] <= 16
    assert len(batch.unique()) == len(batch)


def test_many_classes_and_rows_without_one():
    labels = torch.arange(1000) % 100
    labels[::7] = -1
    batches = RowBatches(labels, 128, 0)
    drawn = batches.draw(3)
    assert (labels[drawn] >= 0).all()
    assert len(labels[drawn].unique()) == MOST_CLASSES
    assert torch.equal(drawn, batches.draw(3))
    assert not torch.equal(drawn, batches.draw(4))
    assert not torch.equal(drawn, RowBatches(labels, 128, 1).draw(3))
