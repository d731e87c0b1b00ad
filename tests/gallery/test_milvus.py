"""What a gallery in Milvus asks of it: little at a time would be slow, and what was put out of memory comes back."""

import numpy as np
import pytest

from rankshot.gallery import Gallery, milvus

pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")


@pytest.fixture
def gallery(tmp_path):
    with Gallery(str(tmp_path / "g.db"), dimensions=2) as made:
        yield made


@pytest.fixture
def requests(gallery, monkeypatch):
    """The names of the requests that are made from now on."""
    made = []

    def noted(name, act):
        def request(*arguments, **settings):
            made.append(name)
            return act(*arguments, **settings)

        return request

    for name in ("get", "query", "search", "upsert"):
        monkeypatch.setattr(gallery.store._client, name, noted(name, getattr(gallery.store._client, name)))
    return made


def some(count):
    return np.random.default_rng(0).normal(size=(count, 2))


def test_many_ids_are_looked_up_in_few_requests(gallery, requests):
    """On a server each waits for a fifth of a second or more, until all that was written before can be seen."""
    count = milvus.IDS_AT_ONCE + 1
    gallery.add(some(count), ids=[f"i{number}" for number in range(count)])
    assert requests == ["get", "get", "upsert", "upsert"]
    assert sum(1 for _ in gallery.items()) == count


def test_a_search_is_one_request(gallery, requests):
    gallery.add(some(3), ids=["a", "b", "c"])
    requests.clear()
    assert len(gallery.search([1.0, 0.0], k=10**12)) == 3
    assert requests == ["search"]


def test_what_was_put_out_of_memory_is_loaded_again(gallery):
    gallery.add(some(3), ids=["a", "b", "c"])
    for act in (lambda: len(gallery.search([1.0, 0.0])), lambda: len(gallery), lambda: len(gallery.store.sources("abc"))):
        gallery.store._client.release_collection(gallery.store.collection)
        assert act() == 3
