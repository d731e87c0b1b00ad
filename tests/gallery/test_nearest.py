"""The nearest vectors, against sorting all of them."""

import numpy as np
import pytest

from rankshot.gallery import nearest as module
from rankshot.gallery.nearest import nearest


@pytest.mark.parametrize("rows_at_once", [7, 2**17])
@pytest.mark.parametrize("asked", ["all", "few", "many"])
@pytest.mark.parametrize("k", [1, 5, 60])
def test_against_sorting(monkeypatch, rows_at_once, asked, k):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    random = np.random.default_rng(k)
    vectors = random.integers(-2, 3, (50, 3)).astype(np.float32)  # with many ties
    queries = random.integers(-2, 3, (9, 3)).astype(np.float32)
    dead = random.random(50) < 0.3
    rows = {"all": None, "few": np.flatnonzero(~dead)[:4], "many": np.flatnonzero(~dead)[:30]}[asked]
    counts = np.flatnonzero(~dead) if rows is None else rows
    for query, (places, similarities) in zip(queries, nearest(vectors, dead, queries, k, rows), strict=True):
        order = sorted(counts.tolist(), key=lambda row, query=query: (-float(vectors[row] @ query), row))[:k]
        assert places.tolist() == order
        assert similarities.tolist() == [float(vectors[row] @ query) for row in order]


def test_nothing_to_find():
    ((places, similarities),) = nearest(np.zeros((0, 4), np.float32), None, np.ones((1, 4), np.float32), 3)
    assert (len(places), len(similarities)) == (0, 0)
    ((places, _),) = nearest(np.ones((5, 4), np.float32), np.ones(5, bool), np.ones((1, 4), np.float32), 3)
    assert len(places) == 0
