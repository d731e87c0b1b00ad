"""`rankshot train`, as a process: it trains, it survives being killed, and it says what is wrong."""

import errno
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
import torch

from rankshot.cli.main import main
from rankshot.cli.train import new_folder
from rankshot.data.loading import NAMES
from rankshot.tensors import read_notes, read_tensors
from rankshot.training import TrainConfig
from rankshot.training.run_folder import read_metrics

SMALL = [
    *("--filters", "8", "--batch-classes", "4", "--batch-size", "32", "--device", "cpu"),
    *("--validation-episodes", "10", "--validation-ways", "5"),
]
TINY = [*SMALL, "--updates", "3", "--validate-every", "3"]


def metrics(folder):
    return [{name: each for name, each in line.items() if name != "seconds"} for line in read_metrics(folder)]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_killed_five_times_it_ends_with_the_same_weights(rankshot, tmp_path):
    """kill -9 at random moments, then --resume: bit for bit what an uninterrupted run gives."""
    often = ("--validate-every", "50", "--log-every", "1", "--checkpoint-every", "7")
    settings = [*SMALL, "--updates", "250", *often, "--augment", "crop"]
    done = run(rankshot("train", "--run", tmp_path / "whole", *settings))
    assert done.returncode == 0, done.stderr

    folder = tmp_path / "killed"
    command = rankshot("train", "--run", folder, *settings, "--resume")
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    for update in sorted(moments.sample(range(1, 200), 5)):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not folder.exists() or last_update(folder) < update):
            time.sleep(0.02)  # to look at it all the time would take its core
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        assert process.wait() == -signal.SIGKILL, f"it was over before it was killed (seed {seed})"

    done = run(command)
    assert done.returncode == 0, done.stderr
    for name in ("model.safetensors", "state.safetensors"):
        one, other = read_tensors(tmp_path / "whole" / name), read_tensors(folder / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), f"{name} differs (seed {seed})"
    assert metrics(folder) == metrics(tmp_path / "whole")
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def last_update(folder):
    lines = metrics(folder)
    return lines[-1]["update"] if lines else 0


def test_a_config_of_another_run(tmp_path, capsys):
    assert main(["train", "--run", str(tmp_path / "one"), *TINY]) == 0
    config = tmp_path / "one" / "config.json"
    assert main(["train", "--run", str(tmp_path / "other"), "--config", str(config), "--alpha", "3"]) == 0
    one, other = (TrainConfig.from_json(tmp_path / name / "config.json").flat() for name in ("one", "other"))
    assert {name for name in one if one[name] != other[name]} == {"alpha"}
    assert other["alpha"] == 3
    assert f"next: rankshot evaluate {tmp_path / 'other'}" in capsys.readouterr().out


def test_resume_takes_the_settings_of_the_run(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["train", "--run", str(folder), *TINY]) == 0
    assert main(["train", "--run", str(folder), "--resume", "--updates", "5"]) == 0
    assert last_update(folder) == 5
    assert main(["train", "--run", str(folder), "--resume", "--alpha", "3"]) == 1
    assert "was begun with alpha 1.0 and cannot go on with 3.0" in capsys.readouterr().err


def test_runs_without_a_name_are_numbered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        folder = new_folder(TrainConfig())
        folder.mkdir(parents=True)
        names.append(str(folder))
    assert names == ["runs/glyphs-map-dlm", "runs/glyphs-map-dlm-2", "runs/glyphs-map-dlm-3"]


@pytest.mark.slow
def test_stopped_by_ctrl_c_it_tells_how_to_go_on(rankshot, tmp_path):
    folder = tmp_path / "a run"
    process = subprocess.Popen(
        rankshot("train", "--run", folder, *SMALL, "--updates", "100000", "--log-every", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and (not folder.exists() or last_update(folder) < 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert f"to go on: rankshot train --out '{folder}' --resume" in output
    assert "Traceback" not in errors
    done = run(rankshot("train", "--run", folder, "--resume", "--updates", "2"))
    assert done.returncode == 1
    assert "already, which is past 2" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "omniglut"], "unknown data set 'omniglut': there is 'glyphs'"),
        (["--method", "contrastive"], "unknown method 'contrastive': there is 'fast-ap', 'lmnn', 'nca'"),
        (["--metric", "map"], "unknown metric 'map'"),
        (["--batch-classes", "500"], "a batch must have 2 to 419 classes, as many as there are, got 500"),
        (["--validation-ways", "5", "100"], "100-way tasks need 100 classes, but there are 48"),
        (["--config", "none.json"], "there is no config none.json"),
        (["--run", "there"], "there exists already: name another folder with --out, or go on with it by --resume"),
        (["--run", "mine"], "mine exists already and is not a run: name another folder with --out"),
        (["--run", "mine", "--resume"], "mine exists already and is not a run: name another folder with --out"),
        (["--run", "file"], "file: File exists"),
        (["--run", "file/run"], "Not a directory"),
        (["--resume"], "--resume needs to know which run: name its folder with --out"),
        (["--run", "there", "--resume", "--seed", "5"], "there was begun with seed 0 and cannot go on with 5"),
        (["--run", "short", "--resume"], "state.safetensors is damaged or cut short"),
        (["--run", "wide", "--resume"], "state.safetensors is of another model: "),
        (["--run", "nan", "--learning-rate", "1e38"], "training broke down at update"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(places, capsys, options, message):
    assert main(["train", *options]) == 1
    told = capsys.readouterr().err
    assert told.startswith("rankshot: ")
    assert message in told
    assert told.count("\n") == 1


@pytest.fixture(scope="module")
def some_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("some")
    for name, filters in (("there", "8"), ("wide", "9")):
        assert main(["train", "--run", str(folder / name), *TINY, "--filters", filters]) == 0
    shutil.copytree(folder / "there", folder / "short")
    return folder


@pytest.fixture
def places(some_runs, tmp_path, monkeypatch):
    """A folder with all sorts of things in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(some_runs, tmp_path, dirs_exist_ok=True)
    state = tmp_path / "short" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:5000])
    shutil.copy(tmp_path / "there" / "state.safetensors", tmp_path / "wide" / "state.safetensors")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    (tmp_path / "file").write_text("")
    yield tmp_path
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]


def test_as_a_process_there_is_no_traceback(rankshot, tmp_path):
    done = run(rankshot("train", "--data", "nothing"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    there = ", ".join(map(repr, NAMES))
    told = f"rankshot: unknown data set 'nothing': there is {there}, no folder or file, and no prepared data set of"
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_goes_away(rankshot, tmp_path):
    """`rankshot train | head -1`: no message, no traceback, and a checkpoint to go on from."""
    often = ["--log-every", "1", "--updates", "2000"]
    process = subprocess.Popen(
        rankshot("train", "--run", tmp_path / "run", *SMALL, *often), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert errors == b""
    assert (tmp_path / "run" / "state.safetensors").exists()


@pytest.mark.slow
def test_without_a_standard_output(rankshot, tmp_path):
    command = " ".join(rankshot("train", "--run", tmp_path / "run", *TINY)) + " >&-"
    done = run(["sh", "-c", command])
    assert (done.returncode, done.stderr) == (0, "")


def test_more_than_there_is_memory(capsys, tmp_path):
    assert main(["train", "--run", str(tmp_path / "run"), *TINY, "--filters", "100000000000"]) == 1
    assert "filters must be a whole number from 1 to 2048, got 100000000000" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(capsys, tmp_path):
    if os.geteuid() == 0:
        closed = "/proc/run"  # root may write anywhere else
    else:
        (tmp_path / "closed").mkdir(mode=0o500)
        closed = tmp_path / "closed" / "run"
    assert main(["train", "--run", str(closed), *TINY]) == 1
    assert capsys.readouterr().err.startswith(f"rankshot: {closed}: ")


@pytest.mark.slow
def test_a_disk_that_fills_up_keeps_the_last_checkpoint(rankshot, small_disk):
    """A file system of its own, filled by somebody else while the run goes on."""
    disk = small_disk("500k")
    folder = disk / "run"
    settings = [*SMALL, "--updates", "100000", "--checkpoint-every", "5"]
    process = subprocess.Popen(
        rankshot("train", "--run", folder, *settings), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (folder / "model.safetensors").exists():
        time.sleep(0.01)
    fill(disk / "other people's files")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert errors.startswith(f"rankshot: {folder}/"), errors
    assert errors.endswith(": No space left on device\n")
    assert errors.count("\n") == 1

    (disk / "other people's files").unlink()
    stopped_at = int(read_notes(folder / "state.safetensors")["update"])
    assert stopped_at >= 95  # the disk may fill right after the network of update 100 was written
    assert (folder / "model.safetensors").exists()
    done = run(rankshot("train", "--run", folder, "--resume", "--updates", stopped_at + 5))
    assert done.returncode == 0, done.stderr
    assert last_update(folder) == stopped_at + 5


def fill(path):
    """Write until there is no room."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(handle, b"0" * 1024):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(handle)
