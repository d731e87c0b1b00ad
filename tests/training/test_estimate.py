"""The time that a run will take, in words."""

import pytest

from rankshot.training import TrainConfig
from rankshot.training.estimate import time_estimate


@pytest.mark.parametrize(
    ("settings", "done", "validation_seconds", "expected"),
    [
        ({"validate_every": 0}, 0, None, "about 20 seconds: 10 updates of 2 s"),
        ({"validate_every": 4}, 0, None, "about 20 seconds, and 3 validations: 10 updates of 2 s"),
        ({"validate_every": 4}, 5, 6.0, "about 22 seconds: 5 updates of 2 s, 2 validations of 6 s"),
        ({"validate_every": 10}, 9, 0.25, "about 2 seconds: 1 update of 2 s, 1 validation of 0.25 s"),
        (
            {"validate_every": 0, "minutes": 0.25},
            0,
            None,
            "about 20 seconds: 10 updates of 2 s; it ends after 0.25 minutes at the latest",
        ),
    ],
)
def test_a_sentence(settings, done, validation_seconds, expected):
    assert time_estimate(TrainConfig.of(updates=10, **settings), done, 2.0, validation_seconds) == expected
