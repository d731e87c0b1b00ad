"""A run becomes part of the package only when it was measured, and takes nothing of its machine along."""

import json
import shutil

import pytest
import torch
from small import small

from rankshot.models import from_pretrained
from rankshot.report import measure, protocol_for, record
from rankshot.reproduce.calibrate import calibrate
from rankshot.reproduce.ship import ship, speed_of
from rankshot.tensors import write_tensors
from rankshot.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory, data_root):
    folder = tmp_path_factory.mktemp("ship") / "run"
    train(small(updates=2, split="trainval", validate_every=0, root=str(data_root)), folder)
    return folder


def test_ship(run, tmp_path, data_root):
    with pytest.raises(FileNotFoundError, match=r"evaluation.json: rankshot evaluate .*run first"):
        ship(run, "mine", tmp_path)
    assert not (tmp_path / "mine").exists()
    protocol = protocol_for([run], ways=[3], shots=[1], episodes=5)
    record(measure(run, protocol, "run"), protocol)
    with pytest.raises(FileNotFoundError, match=r"one_shot.json: python -m rankshot.reproduce.calibrate .*run first"):
        ship(run, "mine", tmp_path)
    calibrate(run, str(data_root))
    place = ship(run, "mine", tmp_path)
    names = sorted(path.name for path in place.iterdir())
    names = [name for name in names if name != "class_means.safetensors"]  # which are there where they help
    assert names == ["README.md", "classes.json", "config.json", "evaluation.json", "model.safetensors", "one_shot.json"]
    settings = json.loads((place / "config.json").read_text())
    assert (settings["data"]["root"], settings["run"]["device"]) == (None, "auto")
    card = (place / "README.md").read_text()
    assert 'from_pretrained("mine")' in card
    assert "## On test classes of glyphs" in card
    from_pretrained(place)


def test_what_is_not_shipped(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "evaluation.json").write_text(json.dumps({"update": "1"}))
    with pytest.raises(ValueError, match="copy was measured after update 1, but holds update 2: rankshot evaluate"):
        ship(copy, "mine", tmp_path)
    (copy / "evaluation.json").write_text(json.dumps({"update": "2"}))
    write_tensors(copy / "model.safetensors", {"large": torch.zeros(6_500_001)}, {"update": "2"})
    with pytest.raises(ValueError, match=r"bytes: at most 26,000,000 are shipped; python -m rankshot\.reproduce\.halve"):
        ship(copy, "mine", tmp_path)
    assert not (tmp_path / "mine").exists()


def test_the_card_tells_the_speed_that_was_measured(tmp_path):
    measured = {
        "networks": {"mine": {"images_a_second": {"pictures": 41.6}}},
        "threads": 2,
        "processor": "Z80",
        "date": "today",
    }
    (tmp_path / "speed.json").write_text(json.dumps(measured))
    assert speed_of("mine", tmp_path / "speed.json") == "2 cores of a CPU (Z80) embed 42 decoded pictures a second (today)."
    assert speed_of("another", tmp_path / "speed.json") == speed_of("mine", tmp_path / "none.json") == ""
