"""Two small runs to report on."""

import pytest

from rankshot.training import TrainConfig, train


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for method in ("map-dlm", "siamese"):
        config = TrainConfig(
            method=method,
            filters=8,
            batch_classes=8,
            batch_size=64,
            updates=100,
            log_every=5,
            validate_every=20,
            validation_episodes=20,
            device="cpu",
        )
        train(config, folder / method)
    return [folder / "map-dlm", folder / "siamese"]
