"""A slice of the campaign of hostile inputs; and the campaign finds faults that were planted."""

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it takes fork, and /proc")


def test_sixty_inputs_of_all_kinds(tmp_path, campaign):
    place = ["--folder", tmp_path / "state", "--results", tmp_path / "fuzz.json"]
    done = campaign("-m", "campaigns.fuzz", "--inputs", 60, "--seed", 39, *place)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "fuzz.json").read_text())
    assert set(told["tried"]) == {"archives", "calls", "galleries", "images", "json", "options", "safetensors"}
    assert (told["inputs"], told["failures"], told["whole"], told["seed"]) == (60, 0, True, 39)
    assert {"commit", "date", "processor", "torch"} <= told.keys()


def test_planted_faults_are_found(tmp_path, campaign):
    done = campaign("tests/campaigns/planted_inputs.py", tmp_path / "state")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["came_to"], told["tried"]) == (4, 11)  # it went on where it was stopped
    wanted = {
        "traceback: RuntimeError": 1,
        "leak: ": 2,
        "outside: a command: writes": 3,
        "outside: a command: starts 'gs'": 4,
        "hang: ": 5,
        "memory: ": 6,
        "answer: ": 7,
        "died: a command: SIGBUS": 8,
        "code: a command: an error without a word": 9,
        "control: ": 10,
    }
    for cause, number in wanted.items():
        assert [inputs for each, inputs in told["found"].items() if each.startswith(cause)] == [[number]], cause
    assert not any(0 in inputs for inputs in told["found"].values())
    assert told["kept"] == [f"{number:06}-planted" for number in range(1, 11)]
    assert told["again"] == ["traceback"]
