"""The table of members holds every image once, and draws none twice."""

import torch

from rankshot.data.members import Members

LABELS = torch.tensor([4, 0, 4, 4, 9, 0, 9, 4, 9, 9, 9])


def test_the_table():
    members = Members(LABELS)
    assert members.classes.tolist() == [0, 4, 9]
    assert members.counts.tolist() == [2, 4, 5]
    found = [row[~past].tolist() for row, past in zip(members.table, members.past_the_end, strict=True)]
    assert found == [[1, 5], [0, 2, 3, 7], [4, 6, 8, 9, 10]]


def test_draws():
    drawn = Members(LABELS).draw(300, way=2, per_class=2, generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (300, 2, 2)
    assert (LABELS[drawn] == LABELS[drawn[..., :1]]).all()
    assert (LABELS[drawn[:, 0, 0]] != LABELS[drawn[:, 1, 0]]).all()
    assert (drawn[..., 0] != drawn[..., 1]).all()
    assert len(drawn.unique()) == len(LABELS)
