"""One config of parts: checked, saved, read back, scheduled; by flat names too."""

import json
import math
from dataclasses import fields

import numpy as np
import pytest

from rankshot.cli.train_options import docs_of
from rankshot.methods import METHODS
from rankshot.registry import Choice
from rankshot.training import TrainConfig
from rankshot.training.config import PLACES
from rankshot.training.sections import SECTIONS, OptimiserConfig, RunConfig
from rankshot.version import FORMAT


def test_through_a_file(tmp_path):
    config = TrainConfig.of(alpha=3, augment=("flip",), validation_ways=(5, 16), schedule="step")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"rankshot": "0.1.0", "model": {}, **config.to_json()}))
    assert TrainConfig.from_json(path) == config
    assert json.loads(path.read_text())["format"] == FORMAT
    assert TrainConfig.of(**config.flat()) == config


def test_lists_are_as_good_as_tuples():
    assert TrainConfig.of(augment=["flip"], validation_ways=[5]) == TrainConfig.of(augment=("flip",), validation_ways=(5,))


def test_what_a_file_leaves_out_is_default(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"format": 3, "method": {"name": "map-dlm", "alpha": 3}}')
    assert TrainConfig.from_json(path) == TrainConfig.of(alpha=3.0)


@pytest.mark.parametrize("method", ["map-dlm", "map-ssvm"])
def test_what_an_old_file_leaves_out_is_the_default_of_then(tmp_path, method):
    """Up to format 2 the objective was the paper's where nobody said otherwise, and alpha may be null."""
    path = tmp_path / "config.json"
    former = {"epsilon": 1.0, "smoothing": 0.0, "coarse_weight": 0.0}
    for content, alpha in (
        ({"method": method}, 10.0),
        ({"method": method, "alpha": 3}, 3.0),
        ({"format": 2, "method": {"name": method, "alpha": None}}, 10.0),
        ({"format": 2, "method": {"name": method, "epsilon": 1.0}}, 10.0),
    ):
        path.write_text(json.dumps(content))
        assert {**former, "alpha": alpha}.items() <= TrainConfig.from_json(path).method.settings.items()
    if method == "map-dlm":
        path.write_text(json.dumps({"format": 2, "method": {"name": method, "sign": -1}}))
        assert TrainConfig.from_json(path).method.settings["alpha"] == 1.0
    path.write_text(json.dumps(TrainConfig.of(method=method).to_json()))
    assert TrainConfig.from_json(path) == TrainConfig.of(method=method)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"alhpa": 3}', "unknown setting 'alhpa': did you mean 'alpha'?"),
        ('{"zzz": 3}', "method 'map-dlm' has no setting 'zzz': there is 'metric', "),
        ('{"updates": "many"}', "updates must be a whole number from 1 to 1,000,000,000, got 'many'"),
        ('{"updates": 1.5}', "updates must be a whole number from 1 to 1,000,000,000, got 1.5"),
        ('{"updates": true}', "updates must be a whole number from 1 to 1,000,000,000, got True"),
        ('{"rotations": 1}', "rotations must be true or false, got 1"),
        ('{"alpha": "x"}', "method map-dlm: alpha must be a number or null, got 'x'"),
        ('{"augment": "flip"}', "augment must be a list of texts"),
        ('{"validation_ways": [5, "x"]}', "validation_ways: [1] must be a whole number from 2 to 1,000,000, got 'x'"),
        ('{"method": "map"}', "unknown method 'map': did you mean 'map-dlm'?"),
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
        ("method", "dlm", "unknown method 'dlm': did you mean 'map-dlm'?"),
        ("method", "x", "unknown method 'x': there is 'fast-ap'"),
        ("network", "x", "unknown network 'x': there is 'conv4'"),
        ("schedule", "linear", 'schedule must be one of "constant", "step", "cosine", got .linear.'),
        ("batch_norm", "layer", "unknown batch_norm 'layer'"),
        ("device", "tpu", 'device must be one of "auto", "cpu", "cuda", got .tpu.'),
        ("precision", "float16", "precision must be one of .*, got 'float16'"),
        ("augment", ("blur",), "unknown augmentation 'blur'"),
        ("updates", 0, "updates must be a whole number from 1 to 1,000,000,000, got 0"),
        ("filters", 0, "network conv4: filters must be a whole number from 1 to 2048, got 0"),
        ("log_every", 0, "log_every must be a whole number from 1 to 1,000,000,000, got 0"),
        ("checkpoint_every", -1, "checkpoint_every must be a whole number from 1 to 1,000,000,000, got -1"),
        ("decay_every", 0, "decay_every must be a whole number from 1 to 1,000,000,000, got 0"),
        ("learning_rate", 0.0, "learning_rate must be a number from 1e-30 to .*, got 0.0"),
        ("learning_rate", math.nan, "learning_rate must be a number from 1e-30 to .*, got nan"),
        ("decay", -0.5, "decay must be a number from 1e-09 to 1, got -0.5"),
        ("decay", 1e300, "decay must be a number from 1e-09 to 1, got 1e[+]300"),
        ("updates", "5", "updates must be a whole number from 1 to 1,000,000,000, got '5'"),
        ("validation_ways", 5, "validation_ways must be a list of .* or null, got 5"),
        ("batch_size", 16.0, "batch_size must be a whole number from 2 to 131,072, got 16.0"),
        ("seed", None, "seed must be a whole number, got None"),
        ("augment", "flip", "augment must be a list of texts, got 'flip'"),
        ("validate_every", -1, "validate_every must be a whole number from 0 to 1,000,000,000, got -1"),
        ("validation_episodes", 1, "episodes must be a whole number from 2 to 1,000,000, got 1"),
        ("validation_ways", (5, 1), r"validation_ways: \[1\] must be a whole number from 2 to 1,000,000, got 1"),
        ("validation_ways", (), "validation_ways must be one number or more, got none"),
        ("validation_shots", (), "validation_shots must be one number or more, got none"),
        ("validation_shots", (0,), r"validation_shots: \[0\] must be a whole number from 1 to 1,000,000, got 0"),
        ("updates", 10**40, "updates must be a whole number from 1 to "),
        ("batch_size", 2**31, "batch_size must be a whole number from 2 to 131,072, got 2147483648"),
        ("split", "test", 'split must be one of "train", "trainval", got .test.'),
        ("average", 1.0, "average and momentum must be from 0 to less than 1"),
        ("momentum", 0.9, "the optimiser adam has no setting 'momentum': that is a setting of 'sgd'"),
        ("nesterov", True, "the optimiser adam has no setting 'nesterov': that is a setting of 'sgd'"),
        ("patience", 0, "patience must be a whole number from 1 to "),
        ("minutes", -1.0, "minutes must be a number from 0.001 to "),
        ("temperature", 0.1, "method 'map-dlm' has no setting 'temperature': that is a setting of .*'nca'.*'smooth-ap'"),
        ("alhpa", 3.0, "unknown setting 'alhpa': did you mean 'alpha'?"),
        ("logger", ("paper",), "logger.* must be one of"),
        ("lr", 0.1, "unknown setting 'lr': here it is called 'learning_rate'"),
    ],
)
def test_settings_that_make_no_sense(setting, value, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig.of(**{setting: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": "trainval"}, "split 'trainval' leaves no classes to validate on: set validate_every to 0"),
        ({"mirror": True}, "mirror needs 'flip' in augment"),
        ({"patience": 2, "validate_every": 0}, "patience counts validations, and there are none: set validate_every"),
        ({"optimiser": "sgd", "nesterov": True}, "nesterov looks ahead along the momentum: set momentum"),
    ],
)
def test_settings_that_contradict_one_another(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig.of(**settings)


def test_another_method_starts_from_its_own_defaults():
    config = TrainConfig.of(alpha=3.0, updates=7).changed(method="nca")
    assert config.method == Choice("nca", {"temperature": 0.1})
    assert config.run.updates == 7
    assert config.changed(temperature=0.2).changed(updates=8).method.settings == {"temperature": 0.2}
    assert config.changed(method="nca").method == config.method


def test_settings_of_one_name():
    """A setting of a method's own must not hide one of every run, or of the network."""

    @METHODS.register("seeded")
    def seeded(context, *, seed: int = 3):
        raise AssertionError

    @METHODS.register("filtered")
    def filtered(context, *, filters: int = 3):
        raise AssertionError

    with pytest.raises(ValueError, match="seeded has a setting 'seed', which every run has: call it otherwise"):
        TrainConfig.of(method="seeded")
    with pytest.raises(ValueError, match="filtered and conv4 both have a setting 'filters'"):
        TrainConfig.of(method="filtered")

    @METHODS.register("named")
    def named(context, *, name: str = "x"):
        raise AssertionError

    with pytest.raises(ValueError, match="named has a setting 'name', which every run has: call it otherwise"):
        TrainConfig.of(method="named")


def test_a_config_of_a_newer_version(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"format": FORMAT + 1, "data": {"name": "x"}}))
    with pytest.raises(ValueError, match=r"config\.json: its format 4 is newer than this version of rankshot, .* up to 3"):
        TrainConfig.from_json(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"trainer": {}}, "unknown section 'trainer': there is 'data', 'network', 'method'"),
        ({"run": {"update": 3}}, "unknown setting 'update' of run: did you mean 'updates'?"),
        ({"run": {"updates": "x"}}, "updates must be a whole number"),
        ({"run": 3}, "run must be an object, got 3"),
        ({"method": {"alpha": 1.0}}, "name of the method must be a text, got None"),
        ({"method": {"name": "nca", "alpha": 1.0}}, "method 'nca' has no setting 'alpha'"),
        (
            {"network": {"architecture": {"name": "conv4", "filters": "x"}}},
            "network conv4: filters must be a whole number",
        ),
    ],
)
def test_sections_that_make_no_sense(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"format": 2, **content}))
    with pytest.raises(ValueError, match=r"config\.json: ") as caught:
        TrainConfig.from_json(path)
    assert message in str(caught.value)


def test_what_was_given_from_python_is_told_by_its_name(tmp_path):
    config = TrainConfig(method=Choice("MyLoss", is_object=True))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_json()))
    assert TrainConfig.from_json(path) == config


def test_schedules():
    assert TrainConfig().learning_rate_at(10**6) == 1e-3
    assert TrainConfig.of(method="siamese").learning_rate_at(0) == 0.1
    step = TrainConfig.of(learning_rate=1.0, schedule="step", decay=0.75, decay_every=2000)
    assert [step.learning_rate_at(update) for update in (0, 1999, 2000, 3999, 4000)] == [1, 1, 0.75, 0.75, 0.75**2]
    cosine = TrainConfig.of(learning_rate=1.0, schedule="cosine", updates=100)
    assert [round(cosine.learning_rate_at(update), 6) for update in (0, 50, 100)] == [1, 0.5, 0]
    warm = TrainConfig.of(learning_rate=1.0, warm_up=4)
    assert [warm.learning_rate_at(update) for update in (0, 1, 3, 4, 99)] == [0.25, 0.5, 1, 1, 1]
    assert OptimiserConfig(schedule="cosine", warm_up=2).factor_at(0, 100) == 0.5


def test_every_setting_is_explained():
    """Their docstrings are the help of the command line; and no two have one flat name."""
    for kind in SECTIONS.values():
        told = docs_of(kind)
        assert {each.name for each in fields(kind)} - {"architecture"} == set(told)
    assert len(PLACES) == sum(len(fields(kind)) for kind in SECTIONS.values()) - 1


def test_numbers_of_numpy_and_paths(tmp_path):
    rate, alpha = np.logspace(-4, -2, 3)[0], np.float32(2)
    config = TrainConfig.of(learning_rate=rate, updates=np.int64(5), data=tmp_path, alpha=alpha)
    assert (config.optimiser.learning_rate, config.run.updates) == (pytest.approx(1e-4), 5)
    assert (config.data.name, config.method.settings["alpha"]) == (str(tmp_path), 2.0)
    assert json.loads(json.dumps(config.to_json())) == json.loads(json.dumps(config.to_json()))
    assert RunConfig(updates=np.int32(3)).updates == 3


def test_sections_of_another_type():
    with pytest.raises(TypeError, match=r"method must be a Choice, got 'nca': TrainConfig\.of\(…\) takes settings by name"):
        TrainConfig(method="nca")
    with pytest.raises(TypeError, match="run must be a RunConfig, got "):
        TrainConfig(run={"updates": 3})


def test_sections_without_their_format(tmp_path):
    (tmp_path / "config.json").write_text('{"run": {"updates": 7}, "method": {"name": "nca"}}')
    config = TrainConfig.from_json(tmp_path / "config.json")
    assert (config.run.updates, config.method.name) == (7, "nca")


def test_epochs_are_no_updates():
    with pytest.raises(ValueError, match="unknown setting 'epochs': training is counted in batches"):
        TrainConfig.of(epochs=3)
