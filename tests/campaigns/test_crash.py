"""A slice of the campaign of crashes; and the campaign finds work that is careless."""

import json
import shutil
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it takes fork, and /proc")


def test_a_few_kills_and_a_few_writes_that_fail(tmp_path, campaign):
    place = ["--folder", tmp_path / "state", "--results", tmp_path / "crash.json"]
    some = ["--inputs", 12, "--rooms", 1, "--every", 29, "--sample", 9, "--seed", 3]
    done = campaign("-m", "campaigns.crash", *some, *place)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "crash.json").read_text())
    assert (told["failures"], told["whole"], told["seed"]) == (0, True, 3)
    assert sum(count for kind, count in told["tried"].items() if kind.startswith("kills")) > 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory, campaign):
    done = campaign("tests/campaigns/planted_work.py", tmp_path_factory.mktemp("planted"))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_was_acknowledged_too_early_is_found_by_kills(planted):
    assert planted["Lines"]["kills"] == [3, []]
    count, problems = planted["Forgetful"]["kills"]
    assert count > 0
    assert problems[0].startswith("lost: kept ")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="it takes gcc")
def test_careless_writes_are_found_by_the_one_that_fails(planted):
    for mode, found in planted["Lines"]["writes"].items():
        assert len(found) >= 9, mode  # a folder, a file, four lines, each waited for
        assert all(not problems for _, problems in found), mode
    halves = planted["Careless"]["writes"]["half a write, once"]
    assert any("lost: kept" in each for _, problems in halves for each in problems)
    assert any("no sentence" in each for _, problems in planted["Rude"]["writes"]["no room, once"] for each in problems)
