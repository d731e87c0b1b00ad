"""A run folder can be read and gone on with, whatever moment it was left at."""

import errno
import json
import os

import pytest
import torch
from disks import grow, raised_by

from rankshot.training import TrainConfig, run_folder
from rankshot.training.run_folder import RunStatus

NETWORK = {"name": "conv4", "in_channels": 1, "filters": 4}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    run_folder.begin(tmp_path / "run", TrainConfig.of(alpha=3.0), NETWORK, resume=False)
    return tmp_path / "run"


def test_start(folder):
    assert run_folder.is_run(folder)
    content = json.loads((folder / "config.json").read_text())
    assert content["model"] == NETWORK
    assert content["method"]["alpha"] == 3
    assert TrainConfig.from_json(folder / "config.json") == TrainConfig.of(alpha=3.0)


def test_nothing_is_overwritten(folder, tmp_path):
    with pytest.raises(FileExistsError, match=r"run exists already: name another folder with --out, or go on .* --resume"):
        run_folder.begin(folder, TrainConfig(), NETWORK, resume=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    for resume in (False, True):
        with pytest.raises(FileExistsError, match="mine exists already and is not a run"):
            run_folder.begin(tmp_path / "mine", TrainConfig(), NETWORK, resume=resume)


def test_settings_that_may_change(folder):
    run_folder.begin(folder, TrainConfig.of(alpha=3.0, updates=7), NETWORK, resume=True)
    assert TrainConfig.from_json(folder / "config.json") == TrainConfig.of(alpha=3.0, updates=7)
    assert json.loads((folder / "config.json").read_text())["model"] == NETWORK
    with pytest.raises(
        ValueError, match=r"run was begun with alpha 3.0 and cannot go on with 4.0: .* --config .*config.json"
    ):
        run_folder.begin(folder, TrainConfig.of(alpha=4.0, updates=7), NETWORK, resume=True)


def test_updates_that_may_not_change(folder, tmp_path, caplog):
    run_folder.save_state(folder, {"a": torch.zeros(1)}, RunStatus(update=12))
    with pytest.raises(ValueError, match="run has come to update 12 already, which is past 7"):
        run_folder.begin(folder, TrainConfig.of(alpha=3.0, updates=7), NETWORK, resume=True)
    (tmp_path / "cosine").mkdir()
    run_folder.begin(tmp_path / "cosine", TrainConfig.of(schedule="cosine"), NETWORK, resume=False)
    run_folder.begin(tmp_path / "cosine", TrainConfig.of(schedule="cosine", updates=900), NETWORK, resume=True)
    assert "the cosine schedule ends at update 900 now; before this it went to 800" in caplog.text


def test_a_run_that_lost_its_checkpoint_is_not_started_anew(folder):
    run_folder.begin(folder, TrainConfig.of(alpha=3.0), NETWORK, resume=True)  # killed before the first one was written
    run_folder.save_model(folder, {"a": torch.zeros(1)}, 1, {})
    with pytest.raises(FileNotFoundError, match=r"run has lost its state.safetensors: to start anew would erase"):
        run_folder.begin(folder, TrainConfig.of(alpha=3.0), NETWORK, resume=True)


@pytest.mark.parametrize("line", [b"garbage", b"[1]", b'{"foo": 1}', b"\xff\xfe"])
def test_damaged_metrics_are_named(folder, line):
    (folder / "metrics.jsonl").write_bytes(b'{"update": 1}\n' + line + b'\n{"update": 2}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 2: this is no line that training wrote"):
        run_folder.read_metrics(folder)


def test_checkpoints(folder):
    tensors = {"a": torch.rand(3), "b": torch.tensor(5)}
    before = {name: each.clone() for name, each in tensors.items()}
    assert run_folder.load_state(folder, tensors) == RunStatus()
    standing = RunStatus(update=12, best=0.1 + 0.2, best_update=10, seconds=1.5, threads=2)
    run_folder.save_state(folder, tensors, standing)
    (folder / ".state.safetensors.partial").write_bytes(b"of a process that was killed")
    for each in tensors.values():
        each.zero_()
    assert run_folder.load_state(folder, tensors) == standing
    assert all(torch.equal(tensors[name], before[name]) for name in before)
    assert not (folder / ".state.safetensors.partial").exists()


def test_a_network_is_not_a_checkpoint(folder):
    run_folder.save_model(folder, {"a": torch.zeros(3)}, 1, {})
    os.replace(folder / "model.safetensors", folder / "state.safetensors")
    with pytest.raises(ValueError, match=r"state.safetensors is no checkpoint of a run"):
        run_folder.load_state(folder, {"a": torch.zeros(3)})


def test_metrics_go_on_after_the_checkpoint(folder):
    assert run_folder.read_metrics(folder) == []
    with run_folder.metrics_after(folder, 0) as log:
        for update in range(1, 6):
            log.write({"update": update, "loss": update / 3})
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"update": 6, "lo')  # killed while writing
    assert [line["update"] for line in run_folder.read_metrics(folder)] == [1, 2, 3, 4, 5]
    with run_folder.metrics_after(folder, 3) as log:
        log.write({"update": 4, "loss": 0})
        log.wait_for_disk()
    assert [line["update"] for line in run_folder.read_metrics(folder)] == [1, 2, 3, 4]
    assert run_folder.read_metrics(folder)[2]["loss"] == 1.0


def test_a_line_of_metrics_is_there_whole_or_not_at_all(small_disk):
    """Of finding 2: on a full disk a line was cut, and the run could neither be evaluated nor resumed."""
    folder = small_disk("16k")
    with run_folder.metrics_after(folder, -1) as metrics:
        written = 0
        while (problem := raised_by(lambda: metrics.write({"update": written, "loss": 0.5}))) is None:  # noqa: B023
            written += 1
        assert (problem.errno, problem.filename) == (errno.ENOSPC, str(folder / "metrics.jsonl"))
        assert [line["update"] for line in run_folder.read_metrics(folder)] == list(range(written))
        grow(folder, "64k")
        metrics.write({"update": written})
    assert [line["update"] for line in run_folder.read_metrics(folder)] == list(range(written + 1))


def test_two_processes_do_not_share_a_folder(folder):
    """The lock belongs to what was opened, so a second opening in this process stands for another process."""
    with (
        run_folder.only_process_in(folder),
        pytest.raises(ValueError, match="another process is training in"),
        run_folder.only_process_in(folder),
    ):
        pass
    with run_folder.only_process_in(folder):
        pass
