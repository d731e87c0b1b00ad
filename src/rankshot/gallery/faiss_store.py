"""A gallery in a folder, searched by FAISS: past some size approximately, and much faster.

Gallery.open("faiss:photos.gallery")     the same folder as without `faiss:`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .local import LocalStore
from .store import Filter, Hit, Vectors

PREFIX = "faiss:"
MOST_HITS = 1000  # beyond which every image is compared too
EXACT = 20_000  # images up to which every one of them is compared
NEIGHBOURS, BREADTH = 32, 128  # of HNSW's graph, and of a search in it


def is_faiss(uri: str) -> bool:
    return uri.startswith(PREFIX)


def folder_in(uri: str) -> Path:
    return Path(uri.removeprefix(PREFIX))


class FaissStore(LocalStore):
    """See `LocalStore`. The index is made for the first search, and anew after a change; filters are searched exactly."""

    _made_for = -1  # how many records of the journal the index was made for

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = False) -> list[list[Hit]]:
        if exactly or where is not None or k > MOST_HITS or not len(self):
            return super().search(queries, k, where)
        index, rows = self._made()
        if len(rows) > EXACT:
            index.hnsw.efSearch = max(BREADTH, 4 * k)
        similarities, places = index.search(np.ascontiguousarray(queries, np.float32), min(k, len(rows)))
        return [
            [self._hit(int(rows[place]), float(similarity)) for similarity, place in zip(*each, strict=True) if place >= 0]
            for each in zip(similarities, places, strict=True)
        ]

    def _made(self) -> tuple[Any, Any]:
        import faiss

        if self._made_for != len(self._records):
            self._rows_of_index = np.flatnonzero(self._alive())
            vectors = np.ascontiguousarray(self._vectors()[self._rows_of_index])
            index: Any
            if len(vectors) <= EXACT:
                index = faiss.IndexFlatIP(self.dimensions)
            else:
                index = faiss.IndexHNSWFlat(self.dimensions, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
            index.add(vectors)
            self._faiss_index, self._made_for = index, len(self._records)
        return self._faiss_index, self._rows_of_index
