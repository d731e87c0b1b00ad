"""What people say of single rows: this is like that, and not like this. A marked row ranks those it was marked with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankshot.losses.chunked import objective_of
from rankshot.losses.ranking_loss import RankingLoss
from rankshot.randomness import generator_for
from rankshot.vectors import unit_vectors

ANCHORS = 64  # of a batch
OTHERS = 128  # rows that nobody marked, to rank below for those who were only told what they are like


class Marks(NamedTuple):
    """For every mark a row, another one, and whether the two are alike; sorted by row."""

    rows: NDArray[np.int64]
    others: NDArray[np.int64]
    alike: NDArray[np.bool_]

    def of(self, rows: NDArray[np.int64]) -> Marks:
        """Those of these rows."""
        kept = np.isin(self.rows, rows)
        return Marks(self.rows[kept], self.others[kept], self.alike[kept])

    def without(self, rows: NDArray[np.int64]) -> Marks:
        """Those in which none of these rows takes part."""
        kept = ~(np.isin(self.rows, rows) | np.isin(self.others, rows))
        return Marks(self.rows[kept], self.others[kept], self.alike[kept])

    @property
    def anchors(self) -> NDArray[np.int64]:
        """Rows that can rank: they were told of something that they are like."""
        return np.unique(self.rows[self.alike])


def marks_of(alike: Any, unlike: Any, triples: Any, n_rows: int) -> Marks | None:
    """From pairs (m, 2) that are alike or unlike, both ways, and triples (m, 3): the first is like the second and not like
    the third. Each is indices of rows. None: there are none."""
    parts = []
    for name, given, width in (("alike", alike, 2), ("unlike", unlike, 2), ("triples", triples, 3)):
        if given is None:
            continue
        indices = _indices(name, given, width, n_rows)
        if width == 3:
            parts += [(indices[:, 0], indices[:, 1], True), (indices[:, 0], indices[:, 2], False)]
        else:
            parts += [(indices[:, 0], indices[:, 1], name == "alike"), (indices[:, 1], indices[:, 0], name == "alike")]
    if not sum(len(part[0]) for part in parts):
        return None
    table = np.unique(
        np.concatenate([np.stack([rows, others, np.full(len(rows), kind)], 1) for rows, others, kind in parts]), axis=0
    )
    if len(np.unique(table[:, :2], axis=0)) < len(table):
        same = (table[1:, :2] == table[:-1, :2]).all(1)
        row, other = table[1:][same][0, :2]
        raise ValueError(f"rows {row} and {other} are marked as alike and as unlike")
    return Marks(table[:, 0], table[:, 1], table[:, 2].astype(bool))


def _indices(name: str, given: Any, width: int, n_rows: int) -> NDArray[np.int64]:
    indices = np.asarray(given)
    if indices.size == 0:
        return np.zeros((0, width), dtype=np.int64)
    if indices.ndim != 2 or indices.shape[1] != width or indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers of shape (m, {width}), got {indices.dtype} of shape {indices.shape}"
        )
    if indices.min() < 0 or indices.max() >= n_rows:
        wrong = indices[(indices < 0) | (indices >= n_rows)][0]
        raise ValueError(f"{name} must be indices of rows, from 0 to {n_rows - 1}, got {wrong}")
    if (indices[:, :1] == indices[:, 1:]).any():
        raise ValueError(f"{name} compares row {indices[(indices[:, :1] == indices[:, 1:]).any(1)][0, 0]} with itself")
    return indices.astype(np.int64)


class MarkedBatch(NamedTuple):
    """Rows that rank, (A,), the rows that they rank, (J,), and which of these are relevant and irrelevant, (A, J) each."""

    anchors: Tensor
    items: Tensor
    relevant: Tensor
    irrelevant: Tensor


def batch_of(marks: Marks, n_rows: int, seed: int, number: int, labels: Tensor | None = None) -> MarkedBatch:
    """Some of the marked rows, all that they were marked with, and others.

    A row without a mark that says what it is not like ranks the others, of which it knows nothing, below. Where rows have
    labels (n,), these count as well; a mark comes before a label.
    """
    generator = generator_for(seed, "marks", number)
    anchors = torch.from_numpy(marks.anchors)
    anchors = anchors[torch.randperm(len(anchors), generator=generator)[:ANCHORS]].sort().values
    chosen = marks.of(anchors.numpy())
    others = torch.randint(n_rows, (min(OTHERS, n_rows),), generator=generator)
    items = torch.cat([torch.from_numpy(chosen.others), others]).unique()  # type: ignore[no-untyped-call]
    rows, columns = (
        torch.searchsorted(anchors, torch.from_numpy(chosen.rows)),
        torch.searchsorted(items, torch.from_numpy(chosen.others)),
    )
    told = torch.zeros(len(anchors), len(items))
    told[rows, columns] = torch.from_numpy(chosen.alike).float() * 2 - 1
    itself = anchors[:, None] == items
    relevant, irrelevant = told > 0, told < 0
    untold = (told == 0) & ~itself
    if labels is not None:
        of_anchors, of_items = labels[anchors][:, None], labels[items]
        known, same = untold & (of_anchors >= 0) & (of_items >= 0), of_anchors == of_items
        relevant, irrelevant = relevant | (known & same), irrelevant | (known & ~same)
    irrelevant = irrelevant | (untold & ~relevant & ~irrelevant.any(-1, keepdim=True))
    return MarkedBatch(anchors, items, relevant, irrelevant)


def marked_loss(anchors: Tensor, items: Tensor, batch: MarkedBatch, loss: RankingLoss) -> Tensor:
    """The mean over all rows that rank, of their vectors (A, D) and those of the items (J, D): a scalar with a gradient."""
    scores = unit_vectors(anchors) @ unit_vectors(items).T
    with torch.no_grad():
        left_out = ~(batch.relevant | batch.irrelevant)
        values, weights = objective_of(scores, batch.relevant, batch.irrelevant, left_out, loss.rankings)
        constant = values - (weights * scores).sum(-1)
    return ((weights * scores).sum(-1) + constant).mean()
