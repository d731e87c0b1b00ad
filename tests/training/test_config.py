"""One config: checked, saved, read back, scheduled."""

import json
import math
from dataclasses import fields

import pytest

from rankshot.training import TrainConfig


def test_through_a_file(tmp_path):
    config = TrainConfig(alpha=3, augment=("flip",), validation_ways=(5, 16), schedule="step")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"rankshot": "0.1.0", "model": {}, **config.to_json()}))
    assert TrainConfig.from_json(path) == config


def test_lists_are_as_good_as_tuples():
    assert TrainConfig(augment=["flip"], validation_ways=[5]) == TrainConfig(augment=("flip",), validation_ways=(5,))


def test_what_a_file_leaves_out_is_default(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"alpha": 3}')
    assert TrainConfig.from_json(path) == TrainConfig(alpha=3.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"alhpa": 3}', "unknown setting 'alhpa': did you mean 'alpha'?"),
        ('{"zzz": 3}', "unknown setting 'zzz': there is 'data', "),
        ('{"updates": "many"}', "updates should be a whole number, got 'many'"),
        ('{"updates": 1.5}', "updates should be a whole number, got 1.5"),
        ('{"updates": true}', "updates should be a whole number, got True"),
        ('{"rotations": 1}', "rotations should be true or false, got 1"),
        ('{"alpha": "x"}', "alpha should be a number or null, got 'x'"),
        ('{"augment": "flip"}', "augment should be a list of texts"),
        ('{"validation_ways": [5, "x"]}', "validation_ways: [1] should be a whole number, got 'x'"),
        ('{"method": "map"}', "unknown method 'map': there is 'map-dlm', 'map-ssvm', 'siamese'"),
        ("nothing", "is not JSON"),
    ],
)
def test_files_that_make_no_sense(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"config\.json") as caught:
        TrainConfig.from_json(path)
    assert message in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no config .*none.json"):
        TrainConfig.from_json(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("method", "dlm", "unknown method 'dlm': there is 'map-dlm'"),
        ("schedule", "linear", "unknown schedule 'linear': there is 'constant', 'step', 'cosine'"),
        ("norm", "layer", "unknown norm 'layer'"),
        ("device", "tpu", "unknown device 'tpu'"),
        ("precision", "float16", "unknown precision 'float16'"),
        ("augment", ("blur",), "unknown augmentation 'blur'"),
        ("updates", 0, "updates must be a whole number from 1 to 1,000,000,000, got 0"),
        ("filters", 0, "filters must be a whole number from 1 to 2,048, got 0"),
        ("log_every", 0, "log_every must be a whole number from 1 to 1,000,000,000, got 0"),
        ("checkpoint_every", -1, "checkpoint_every must be a whole number from 1 to 1,000,000,000, got -1"),
        ("decay_every", 0, "decay_every must be a whole number from 1 to 1,000,000,000, got 0"),
        ("learning_rate", 0.0, "learning_rate must be a number from 1e-30 to 1e[+]38, got 0.0"),
        ("learning_rate", math.nan, "learning_rate must be a number from 1e-30 to 1e[+]38, got nan"),
        ("decay", -0.5, "decay must be above 0 and at most 1, got -0.5"),
        ("decay", 1e300, "decay must be above 0 and at most 1, got 1e[+]300"),
        ("updates", "5", "updates should be a whole number, got '5'"),
        ("validation_ways", 5, "validation_ways should be a list of whole numbers or null, got 5"),
        ("batch_size", 16.0, "batch_size should be a whole number, got 16.0"),
        ("seed", None, "seed should be a whole number, got None"),
        ("augment", "flip", "augment should be a list of texts, got 'flip'"),
        ("validate_every", -1, "validate_every must be a whole number from 0 to 1,000,000,000, got -1"),
        ("validation_episodes", 1, "episodes must be a whole number from 2 to 1,000,000, got 1"),
        ("validation_ways", (5, 1), "each of validation_ways must be a whole number from 2 to 1,000,000, got 1"),
        ("validation_ways", (), "validation_ways must be one number or more, got none"),
        ("validation_shots", (), "validation_shots must be one number or more, got none"),
        ("validation_shots", (0,), "each of validation_shots must be a whole number from 1 to 1,000,000, got 0"),
        ("updates", 10**40, "updates must be a whole number from 1 to .*, got a number of 41 digits"),
        ("batch_size", 2**31, "batch_size must be a whole number from 2 to 131,072, got 2147483648"),
        ("split", "test", "unknown split 'test': there is 'train', 'trainval'"),
        ("average", 1.0, "average must be from 0 to less than 1, got 1.0"),
    ],
)
def test_settings_that_make_no_sense(setting, value, message):
    config = TrainConfig(**{setting: value})
    with pytest.raises(ValueError, match=message):
        config.check()


def test_schedules():
    assert TrainConfig().learning_rate_at(10**6) == 1e-3
    assert TrainConfig(method="siamese").learning_rate_at(0) == 0.1
    step = TrainConfig(learning_rate=1.0, schedule="step", decay=0.75, decay_every=2000)
    assert [step.learning_rate_at(update) for update in (0, 1999, 2000, 3999, 4000)] == [1, 1, 0.75, 0.75, 0.75**2]
    cosine = TrainConfig(learning_rate=1.0, schedule="cosine", updates=100)
    assert [round(cosine.learning_rate_at(update), 6) for update in (0, 50, 100)] == [1, 0.5, 0]


def test_every_setting_is_explained():
    """Their docstrings are the help of the command line."""
    import inspect

    source = inspect.getsource(TrainConfig)
    for each in fields(TrainConfig):
        _, after = source.split(f"    {each.name}: ", 1)
        assert after.splitlines()[1].strip().startswith('"""'), each.name
