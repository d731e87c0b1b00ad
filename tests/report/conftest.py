"""Two small runs to report on."""

import pytest
from small import small

from rankshot.training import train


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for method in ("map-dlm", "siamese"):
        config = small(method=method, batch_classes=8, batch_size=64, updates=100, log_every=5, validate_every=20)
        train(config, folder / method)
    return [folder / "map-dlm", folder / "siamese"]
