"""Every system learns: 200 updates on glyphs, then 5-way 1-shot on alphabets never seen, well above chance."""

import pytest

from rankshot import data, fewshot
from rankshot.methods import METHODS, settings_for
from rankshot.models import from_pretrained
from rankshot.training import TrainConfig, train

CHANCE = 0.2
OTHERS = {
    "maml": {"learning_rate": 0.01},
    "baseline++": {"learning_rate": 0.01},  # cosines learn slowly
    "meta-lstm": {"batch_size": 40},  # half the queries, and two thirds of the time
    "nearest": {"filters": 12},
    "matching": {"filters": 12},
}


@pytest.mark.parametrize("name", list(METHODS))
def test_more_than_twice_chance(name, tmp_path, data_root):
    quiet = {"validate_every": 0, "log_every": 200, "checkpoint_every": 200}
    config = TrainConfig.of(**{"updates": 200, "filters": 8, **quiet, **settings_for(name), **OTHERS.get(name, {})})
    train(config, tmp_path / "run")
    images = data.load("glyphs", "test", data_root)
    model = from_pretrained(tmp_path / "run")
    (result,) = fewshot.evaluate(model, images, [fewshot.Classification(5, 1)], episodes=60)
    assert result.mean - result.interval > 2 * CHANCE, str(result)
