"""A slice of the campaign of threads and processes; and what is wrong does not pass."""

import numpy as np
import pytest

from campaigns.stress import Items, Setup, Worker, stressed
from rankshot.gallery import Gallery, Hit


def setup_in(folder, **changes):
    given = {"processes": 2, "threads": 3, "vectors": 600, "seconds": 1.5, "exact": True, "seed": 0} | changes
    counters = folder / "counters"
    counters.write_bytes(bytes(32 * given["processes"] * given["threads"]))
    return Setup(uri=str(folder / "g"), counters=str(counters), **given)


@pytest.mark.slow
def test_two_processes_with_three_threads(tmp_path):
    """Load: it takes as long as it is told to, on all cores."""
    found = stressed(setup_in(tmp_path))
    assert (found["wrong"], found["first_wrong"]) == (0, [])
    assert min(found["done"].values()) > 0


@pytest.fixture
def worker(tmp_path):
    gallery = Gallery(tmp_path / "g", dimensions=64)
    counters = np.array([[10, 9, 3, 2]])  # the tenth is being added, the third deleted
    yield Worker(setup_in(tmp_path, processes=1, threads=1), Items(0), gallery, counters, 0)
    gallery.close()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"id": "0-9"}, "another's metadata"),
        ({"id": "0-10"}, "never added"),
        ({"id": "0-1"}, "deleted before"),
        ({"similarity": 0.5}, "not its similarity"),
        ({"metadata": Items.metadata(0, 6)}, "another's metadata"),
    ],
)
def test_what_is_wrong_is_found(worker, change, told):
    query = worker.items.table[0]
    (vector,) = worker.items.vectors(0, np.array([5]))
    hit = Hit("0-5", float(vector @ query), Items.metadata(0, 5))._replace(**change)
    assert worker._problem(hit, query, None, worker.counters, worker.counters) == told
    if told is None:
        assert worker._problem(hit, query, "no colour", worker.counters, worker.counters) == "not no colour"


def test_what_is_missing_is_found(worker):
    """Of the items that were there all the while, 3 to 8, one that is near and was not found."""
    query = worker.items.vectors(0, np.array([4]))[0]
    others = [Hit(f"0-{n}", float(worker.items.vectors(0, np.array([n]))[0] @ query), {}) for n in (3, 5, 6, 7, 8)]
    worker._check_complete(others, query, 5, None, worker.counters, worker.counters)
    assert "0-4 at 1.000000 was there" in worker.wrong[0]
