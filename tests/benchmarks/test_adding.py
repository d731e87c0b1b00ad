"""Several processes that add to one gallery at once."""

import pytest

from benchmarks.adding import add
from benchmarks.clusters import Clusters
from rankshot import Gallery


@pytest.mark.slow
def test_every_batch_is_told_once_however_the_processes_start(tmp_path):
    """They never start at the same moment: the first one's batches must not be taken for the others' signs of life."""
    items, seen = Clusters(vectors=60, dimensions=4, clusters=3, batch=5, seed=0), []
    uri = str(tmp_path / "gallery")
    Gallery(uri, dimensions=4).close()
    adding = add(uri, items, 4, seen.append)
    assert sorted(step.batch for step in adding.steps) == list(range(12))
    assert seen == list(range(5, 61, 5))
    with Gallery.open(uri) as gallery:
        assert len(gallery) == 60
