"""Which vectors of a gallery count at a moment, each checked once."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .segment import Block, Segment
from .store import Damaged, Vectors
from .transaction import RESCUE, Transaction


class View(NamedTuple):
    """What counts at one moment.

    change   number of the last change
    vectors  (rows, D), also of images that were deleted
    dead     (rows,): those; None where there are none
    """

    change: int
    vectors: Vectors
    dead: NDArray[np.bool_] | None

    @property
    def alive(self) -> int:
        return len(self.vectors) - (0 if self.dead is None else int(np.count_nonzero(self.dead)))


class Views:
    """The view of each transaction, made from the last one. Threads may share it: a view never changes."""

    def __init__(self, folder: Path, segment: Segment) -> None:
        self._folder = folder
        self._segment = segment
        self._last = View(-1, np.zeros((0, segment.dimensions), np.float32), None)
        self._intact = 0  # rows whose checksums were compared

    def at(self, transaction: Transaction) -> View:
        """What counts for this transaction; what has changed since the last one is read, and no more."""
        change, rows = transaction.state()
        before = self._last
        if before.change == change:
            return before
        if before.change > change:  # another thread has seen more than this transaction
            before = View(-1, before.vectors[:0], None)
        self._check_blocks(transaction, rows)
        if before.change < 0:
            transaction.check_counts(rows)
        gone = transaction.deleted(before.change)
        dead = None
        if gone or before.dead is not None:
            dead = np.zeros(rows, bool)
            dead[: len(before.vectors)] = False if before.dead is None else before.dead
            if gone and not 0 <= min(gone) <= max(gone) < rows:
                raise Damaged(f"{self._folder} is damaged: an image was deleted that never was there. {RESCUE}")
            dead[gone] = True
        view = View(change, self._segment.rows(rows), dead)
        if self._last.change < change:
            self._last = view
        return view

    def problem_of(self, block: Block) -> str | None:
        """What is wrong with the vectors of a block, if anything is."""
        first, count, _ = block
        try:
            is_intact = self._segment.is_intact(block)
        except (Damaged, FileNotFoundError):
            is_intact = False
        if is_intact:
            return None
        return f"{self._folder}: images {first} to {first + count - 1} are damaged: their checksum is wrong"

    def _check_blocks(self, transaction: Transaction, rows: int) -> None:
        """Vectors that were not looked at before, against their checksums."""
        next_row = self._intact
        for block in transaction.blocks(next_row):
            first, count, _ = block
            if first != next_row or count < 1 or first + count > rows:
                raise Damaged(f"{self._folder} is damaged: its vectors are not told of one after another. {RESCUE}")
            if problem := self.problem_of(block):
                raise Damaged(f"{problem}. {RESCUE}")
            next_row += count
        if next_row < rows:
            raise Damaged(f"{self._folder} is damaged: it counts {rows} vectors, and tells of {next_row}. {RESCUE}")
        self._intact = max(self._intact, next_row)
