"""What earlier versions wrote opens: every config in the repository, and small runs of every method (format_1/).

Those runs, and what their networks answered (expected.json), were made by the code that wrote format 1.
"""

import json
from pathlib import Path

import pytest
import torch

import rankshot
from rankshot.methods import METHODS
from rankshot.models.shipped import FOLDER
from rankshot.reproduce.job import settings_in
from rankshot.schema import read_json
from rankshot.training import TrainConfig
from rankshot.training.old_configs import migrated

RUNS = Path(__file__).parent / "format_1"
EXPECTED = json.loads((RUNS / "expected.json").read_text())
RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_run_of_every_method(name):
    """The same network, to the last digit that was written down. MAML takes steps by gradients before it answers: what was
    written down, in float32, is itself 7e-6 off what float64 gives, and other processors round otherwise."""
    model = rankshot.from_pretrained(RUNS / name)
    images = torch.arange(6 * 28 * 28).view(6, 1, 28, 28) * 37 % 101 / 100.0
    images = images * (torch.arange(28)[:, None] < torch.arange(6, 30, 4)[:, None, None, None])
    tolerance = 1e-6
    if name == "maml":
        model, images, tolerance = model.double(), images.double(), 1e-5
    with torch.no_grad():
        asked = hasattr(model, "answer")
        found = model.answer(images[:3], torch.arange(3), images[3:]) if asked else model(images)
    torch.testing.assert_close(found.float(), torch.tensor(EXPECTED[name]), rtol=tolerance, atol=tolerance)
    assert len(set(map(tuple, EXPECTED[name]))) == len(found)  # a network that has learned something: no two answers alike
    config, before = TrainConfig.from_json(RUNS / name / "config.json"), read_json(RUNS / name / "config.json")
    assert config.method.name == before["method"]
    assert config.network.architecture.settings == {"filters": 4}
    assert (config.batch.classes, config.batch.size) == (before["batch_classes"], before["batch_size"])
    for option in before["options"]:
        setting, _, value = option.partition("=")
        assert str(config.method.settings[setting]).lower() in (value, f"{value}.0")


def test_every_method_is_among_them():
    assert {name.replace("baselinepp", "baseline++") for name in EXPECTED} == set(METHODS) - {"arc"}  # which came later


def test_settings_that_have_other_names_now():
    config = TrainConfig.from_json(RUNS / "map-dlm" / "config.json")
    assert config.method.settings == {
        **METHODS["map-dlm"].defaults,
        "alpha": 1.0,
        "epsilon": 0.01,
        "smoothing": 0.02,
        "smoothing_samples": 3,
        "coarse_weight": 0.5,
    }
    assert (config.network.mirror, config.data.augment, config.optimiser.average) == (True, ("flip",), 0.5)
    assert TrainConfig.from_json(RUNS / "siamese" / "config.json").validation.batch_norm == "batch"
    assert TrainConfig.from_json(RUNS / "smooth-ap" / "config.json").method.settings == {"temperature": 0.05}
    assert TrainConfig.from_json(RUNS / "meta-lstm" / "config.json").optimiser.clip == 0.25


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir() if path.is_dir()))
def test_the_weights_that_come_along(name):
    content = read_json(FOLDER / name / "config.json")
    if "optimiser" in content:  # a config of sections, as they are now
        assert (
            TrainConfig.from_json(FOLDER / name / "config.json").optimiser.learning_rate
            == content["optimiser"]["learning_rate"]
        )
        return
    flat = TrainConfig.from_json(FOLDER / name / "config.json").flat()
    same = [each for each in content if each in flat]
    assert len(same) > 25
    for each in same:
        assert flat[each] == (tuple(content[each]) if isinstance(content[each], list) else content[each]), each


def test_every_record_of_results():
    found = 0
    for path in RESULTS.rglob("*.json"):
        content = json.loads(path.read_text())
        if not isinstance(content, dict) or not isinstance(content.get("config"), dict) or "name" not in content:
            continue
        settings = settings_in(content, path)
        if "format" not in content["config"]:
            found += 1
            for name in ("method", "updates", "batch_size", "seed", "schedule"):
                assert settings[name] == content["config"].get(name, settings[name]), path
    assert found > 300


def test_what_no_method_of_then_could_have():
    with pytest.raises(ValueError, match="nca has no option 'shot=1': there is temperature"):
        migrated({"method": "nca", "options": ["shot=1"]})
    with pytest.raises(ValueError, match="option temperature cannot be read: 'hot'"):
        migrated({"method": "nca", "options": ["temperature=hot"]})
    assert migrated({"method": "nca", "alpha": None, "temperature": 0.01}) == {"method": "nca"}
