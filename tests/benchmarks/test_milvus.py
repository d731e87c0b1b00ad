"""The rehearsal on a Milvus server, in small: killed in the middle, and everything is there once."""

import json
from importlib.util import find_spec

import pytest
from processes import python

from benchmarks.clusters import Clusters

FEW = "--vectors 3000 --dimensions 16 --clusters 30 --batch 250 --queries 10"


@pytest.mark.slow
def test_the_rehearsal_in_small(tmp_path):
    """A server, killed twice: it takes half a minute each time until it has loaded what it had."""
    if find_spec("milvus") is None:
        pytest.skip("the package milvus, a server to test with, is not installed")
    done = python("-m", "benchmarks.milvus", *FEW.split(), "--to", tmp_path / "milvus.json")
    if "a Milvus server does not run here" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "milvus.json").read_text())
    assert results["config"]["processes"] == 2
    assert 1500 <= results["adding"]["killed_at_vectors"] < 3000
    assert (results["there"]["vectors"], results["there"]["missing"], results["there"]["twice"]) == (3000, 0, 0)
    assert results["searching"]["recall_at_10"] == 1
    assert (results["restarting"]["vectors"], results["restarting"]["first_recall_at_10"]) == (3000, 1)
    assert results["server_memory_bytes"]["peak"] >= results["server_memory_bytes"]["added"] > 2**20
    assert results["disk_bytes"]["added"]["all"] > 3000 * 16 * 4


def test_vectors_follow_from_their_numbers():
    items = Clusters(vectors=25, dimensions=8, clusters=3, batch=10, seed=0)
    again = Clusters(vectors=25, dimensions=8, clusters=3, batch=10, seed=0)
    assert [len(items.vectors_of(batch)) for batch in range(items.batches)] == [10, 10, 5]
    assert (items.vectors_of(2) == again.vectors_of(2)).all()
    assert (items.vectors_of(0)[:5] != items.queries(5)).all()
    assert abs((items.vectors_of(1) ** 2).sum(1) - 1).max() < 1e-6
