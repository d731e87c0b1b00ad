"""Runs in order, once each, in one process or several, and after being stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import python
from processes import FOREGROUND
from small import small

from rankshot.reproduce import run_all as run_all_module
from rankshot.reproduce.job import Run
from rankshot.reproduce.run_all import run_all
from rankshot.tensors import read_notes
from rankshot.training.run_folder import read_metrics


def runs(number=3, **settings):
    config = {"updates": 4, "validate_every": 0, "split": "trainval", **settings}
    return [Run(f"small/{each}", small(seed=each, **config), None) for each in range(number)]


@pytest.fixture(autouse=True)
def drawn(data_root):
    """Glyphs are drawn before several processes want them."""
    from rankshot import data

    data.load("glyphs")


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_is_run_once(jobs, tmp_path, capfd):
    assert run_all(runs(), tmp_path / "results", tmp_path / "runs", jobs=jobs) == []
    told = capfd.readouterr().out
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*.json")}
    assert sorted(path.stem for path in made) == ["0", "1", "2"]
    assert all(f"small/{number}: " in told for number in range(3))
    assert run_all(runs(), tmp_path / "results", tmp_path / "runs") == []
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*.json")}


@pytest.mark.slow
def test_processes_share_the_cores():
    """Each with threads for all cores, they would wait for one another, and a GPU for them."""
    done = python(
        "import os, torch\n"
        "from rankshot.reproduce import run_all\n"
        "os.cpu_count = lambda: 6\n"
        "torch.set_num_threads(6)\n"
        "for jobs in (1, 2, 4, 12):\n"
        "    run_all._take(lambda: print(torch.get_num_threads()), None, None, jobs, None)\n"
    )
    assert done.stdout.split() == ["6", "3", "1", "1"], done.stderr


def test_first_things_first_and_no_more_than_there_is_time_for(tmp_path):
    left = run_all(runs(), tmp_path / "results", tmp_path / "runs", seconds=0.01)
    assert [run.name for run in left] == ["small/1", "small/2"]


def test_one_that_breaks_down_leaves_the_others_alone(tmp_path, capfd):
    first, second, third = runs()
    broken = Run("small/1", small(batch_classes=100_000), None)
    assert run_all([first, broken, third], tmp_path / "results", tmp_path / "runs") == [broken]
    assert "small/1: a batch must have 2 to" in capfd.readouterr().out
    assert second.name == broken.name


def test_without_its_gpu_a_process_begins_nothing_else(tmp_path, capfd, monkeypatch):
    """An error on a GPU is final for the process: what is left is not tried in vain."""
    assert not run_all_module.gpu_is_lost()
    monkeypatch.setattr(run_all_module, "gpu_is_lost", lambda: True)  # where there is a GPU, it could not be repaired
    first, _, third = runs()
    broken = Run("small/1", small(batch_classes=100_000), None)
    assert run_all([first, broken, third], tmp_path / "results", tmp_path / "runs") == [broken, third]
    assert "the GPU answers this process no more" in capfd.readouterr().out


def test_bad_options(tmp_path):
    with pytest.raises(ValueError, match="jobs must be a whole number from 1 to 256, got 0"):
        run_all(runs(), tmp_path, tmp_path, jobs=0)
    with pytest.raises(ValueError, match=r"seconds must be a number from 0 to 1e[+]09, got -1"):
        run_all(runs(), tmp_path, tmp_path, seconds=-1)


UPDATES = 300
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from reproduce.test_run_all import runs
from rankshot.reproduce.run_all import run_all
if __name__ == "__main__":
    left = run_all(runs(2, updates=int(sys.argv[2])), Path(sys.argv[1]), Path(sys.argv[1]) / "runs", jobs=2)
    print("left", len(left))
"""


@pytest.mark.slow
def test_ctrl_c_while_its_processes_begin(tmp_path):
    """They say nothing; who began them has heard it too."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=os.path.dirname(os.path.dirname(__file__))))
    working = subprocess.Popen(
        [*FOREGROUND, sys.executable, str(script), str(tmp_path), str(UPDATES)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{working.pid}/task/{working.pid}/children")
    while len(children.read_text().split()) < 3:  # two, and one that looks after what they share
        assert working.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(working.pid, signal.SIGINT)
    _, err = working.communicate(timeout=60)
    assert working.returncode != 0
    assert "Process SpawnProcess" not in err
    assert err.count("Traceback") == 1  # of the script itself, which is no command


@pytest.mark.slow  # two runs that are long enough to be stopped in the middle
def test_stopped_by_ctrl_c_it_goes_on_where_it_was(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=os.path.dirname(os.path.dirname(__file__))))
    command = [sys.executable, str(script), str(tmp_path), str(UPDATES)]
    # A group of its own, as a terminal's foreground job is: Ctrl-C reaches all of it.
    working = subprocess.Popen([*FOREGROUND, *command], start_new_session=True)
    states = [tmp_path / "runs" / "small" / str(number) / "metrics.jsonl" for number in range(2)]
    while not all(path.exists() and path.stat().st_size for path in states):
        assert working.poll() is None
        time.sleep(0.05)
    os.killpg(working.pid, signal.SIGINT)
    assert working.wait(60) != 0
    assert not list(tmp_path.glob("small/*.json"))
    stopped = [int(read_notes(path.parent / "state.safetensors")["update"]) for path in states]
    assert all(0 < update < UPDATES for update in stopped)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines()[-1] == "left 0"
    for number, path in enumerate(states):
        assert json.loads((tmp_path / "small" / f"{number}.json").read_text())["kept_update"] == UPDATES
        assert [line["update"] for line in read_metrics(path.parent)] == list(range(4, UPDATES + 1, 4))  # nothing twice
