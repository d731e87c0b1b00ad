"""A gallery in a folder, searched by FAISS: past some size approximately, and much faster.

Gallery.open("faiss:photos.gallery")     the same folder as without `faiss:`

The index is made for the first search. What is added after that is compared with every query, and what was deleted is taken
out of what the index finds; when there is much of either, the index is made anew, while others go on with the old one.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .local import LocalStore
from .nearest import Found, nearest
from .store import Vectors
from .views import View

PREFIX = "faiss:"
MOST_HITS = 1000  # beyond which every image is compared
EXACT = 20_000  # images up to which every one of them is compared
NEIGHBOURS, BREADTH = 32, 128  # of HNSW's graph, and of a search in it
STALE = 0.2  # share of images that came or went, past which the index is made anew


def is_faiss(uri: str) -> bool:
    return uri.startswith(PREFIX)


def folder_in(uri: str) -> Path:
    return Path(uri.removeprefix(PREFIX))


class Index(NamedTuple):
    """Over the first `rows` rows of vectors, but for those that were dead then: `row_numbers` are the others."""

    faiss: Any
    rows: int
    row_numbers: NDArray[np.int64]


class FaissStore(LocalStore):
    """See `LocalStore`. Filters, and small galleries, are searched exactly."""

    def __init__(self, folder: Path) -> None:
        import faiss  # noqa: F401  # now, and not at the first search: whoever lacks it should know

        super().__init__(folder)
        self._index: Index | None = None
        self._making = threading.Lock()

    def _nearest(self, view: View, queries: Vectors, k: int, rows: NDArray[np.int64] | None, *, exactly: bool) -> Found:
        if exactly or rows is not None or k > MOST_HITS or view.alive <= EXACT:
            return super()._nearest(view, queries, k, rows, exactly=exactly)
        index = self._index_for(view)
        by_index = self._by_index(index, view, queries, k)
        tail = slice(index.rows, len(view.vectors))
        recent = nearest(view.vectors[tail], None if view.dead is None else view.dead[tail], queries, k)
        found = [_merged(one, (rows + index.rows, near), k) for one, (rows, near) in zip(by_index, recent, strict=True)]
        short = [query for query, (rows, _) in enumerate(found) if len(rows) < min(k, view.alive)]
        if short:  # too much of what the index found is deleted
            for query, answer in zip(short, nearest(view.vectors, view.dead, queries[short], k), strict=True):
                found[query] = answer
        return found

    def _by_index(self, index: Index, view: View, queries: Vectors, k: int) -> Found:
        """What the index knows, of what is still there for this view."""
        import faiss

        most = min(2 * k, len(index.row_numbers))
        how = faiss.SearchParametersHNSW(efSearch=max(BREADTH, 4 * k))  # type: ignore[attr-defined]
        similarities, positions = index.faiss.search(queries, most, params=how)
        found = []
        for near, where in zip(similarities, positions, strict=True):
            rows = index.row_numbers[where[where >= 0]]
            counts = rows < len(view.vectors)
            counts[counts] = True if view.dead is None else ~view.dead[rows[counts]]
            found.append((rows[counts][:k], near[where >= 0][counts][:k]))
        return found

    def _index_for(self, view: View) -> Index:
        index = self._index
        if index is not None and not _is_stale(index, view):
            return index
        if not self._making.acquire(blocking=index is None):
            assert index is not None
            return index  # another thread makes a new one
        try:
            if self._index is index or self._index is None:
                self._index = _made(view)
            return self._index
        finally:
            self._making.release()


def _is_stale(index: Index, view: View) -> bool:
    gone = (
        0 if view.dead is None else int(np.count_nonzero(view.dead[: index.rows])) - (index.rows - len(index.row_numbers))
    )
    return len(view.vectors) - index.rows + gone > STALE * len(index.row_numbers)


def _made(view: View) -> Index:
    import faiss

    row_numbers = np.arange(len(view.vectors)) if view.dead is None else np.flatnonzero(~view.dead)
    index = faiss.IndexHNSWFlat(view.vectors.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.add(np.ascontiguousarray(view.vectors[row_numbers]))
    return Index(index, len(view.vectors), row_numbers)


def _merged(
    one: tuple[NDArray[np.int64], NDArray[np.float32]], other: tuple[NDArray[np.int64], NDArray[np.float32]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows, near = np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
    best = np.lexsort((rows, -near))[:k]
    return rows[best], near[best]
