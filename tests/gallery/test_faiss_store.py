"""Approximate, and yet never an image that is deleted, or was not there."""

import threading

import numpy as np
import pytest

pytest.importorskip("faiss")

from rankshot.gallery import faiss_store
from rankshot.gallery.faiss_store import FaissStore


@pytest.fixture
def small(monkeypatch):
    """Approximate from 100 images on."""
    monkeypatch.setattr(faiss_store, "EXACT", 100)


def unit(seed, count, dimensions=16):
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_as_good_as_exact_for_so_few(tmp_path, small):
    store = FaissStore.create(tmp_path / "g", 16, {})
    vectors = unit(0, 500)
    store.add(vectors, [str(k) for k in range(500)], [{}] * 500)
    queries = unit(1, 20)
    by_index, exact = store.search(queries, 10), store.search(queries, 10, exactly=True)
    same = [len({h.id for h in one} & {h.id for h in other}) for one, other in zip(by_index, exact, strict=True)]
    assert np.mean(same) > 9.5
    assert store._index is not None


def test_what_came_and_went_after_the_index_was_made(tmp_path, small):
    """Of finding 3: deleted images are never found; new ones are at once."""
    store = FaissStore.create(tmp_path / "g", 16, {})
    vectors = unit(0, 400)
    store.add(vectors, [str(k) for k in range(400)], [{}] * 400)
    assert store.search(vectors[7:8], 1)[0][0].id == "7"
    index = store._index
    gone = [hit.id for hit in store.search(vectors[7:8], 30)[0]]
    store.delete(gone)
    store.add(vectors[7:8], ["new"], [{}])
    hits = store.search(vectors[7:8], 30)[0]
    assert hits[0].id == "new"
    assert len(hits) == 30
    assert not set(gone) & {hit.id for hit in hits}
    assert store._index is index  # nothing was made anew for that
    store.add(unit(2, 100), [f"more{k}" for k in range(100)], [{}] * 100)
    store.search(vectors[:1], 1)
    assert store._index is not index


def test_too_much_of_what_the_index_finds_is_deleted(tmp_path, small):
    store = FaissStore.create(tmp_path / "g", 16, {})
    near = unit(0, 1) + 0.01 * unit(1, 60)
    store.add(np.concatenate([near, unit(2, 900)]), [str(k) for k in range(960)], [{}] * 960)
    store.search(near[:1], 5)
    store.delete([str(k) for k in range(60)])
    hits = store.search(near[:1], 5)[0]
    exact = store.search(near[:1], 5, exactly=True)[0]
    assert [hit.id for hit in hits] == [hit.id for hit in exact]


def test_threads_that_search_while_others_delete(tmp_path, small):
    store = FaissStore.create(tmp_path / "g", 16, {})
    vectors = unit(0, 600)
    store.add(vectors, [str(k) for k in range(600)], [{}] * 600)
    gone, problems, stop = set(), [], threading.Event()

    def search(seed):
        random = np.random.default_rng(seed)
        while not stop.is_set():
            before = set(gone)
            for hit in store.search(vectors[random.integers(600)][None], 20)[0]:
                if hit.id in before:
                    problems.append(hit)

    threads = [threading.Thread(target=search, args=[seed]) for seed in range(3)]
    for each in threads:
        each.start()
    for number in range(0, 300, 3):
        store.delete([str(number)])
        gone.add(str(number))
    stop.set()
    for each in threads:
        each.join()
    assert problems == []
