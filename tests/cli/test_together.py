"""Commands that a real torchrun starts in two processes: trained, killed, restarted, refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from PIL import Image
from processes import FOREGROUND, ROOT

from rankshot.gallery import Gallery
from rankshot.tensors import read_tensors
from rankshot.training.run_folder import read_metrics

pytestmark = pytest.mark.slow
TORCHRUN = [*FOREGROUND, sys.executable, "-m", "torch.distributed.run"]
RANKSHOT = ["-m", "rankshot"]
# By supcon, whose gradient has no jumps: what rounding does on one process and on two stays small.
SMALL = [
    *("--method", "supcon"),
    *("--data", "glyphs", "--filters", "16", "--batch-size", "32", "--batch-classes", "8", "--updates", "60"),
    *("--checkpoint-every", "3", "--log-every", "3", "--validate-every", "30", "--validation-episodes", "10"),
]
SOON = 60  # seconds, in which all processes have ended when one has


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """One thread each, and data that is drawn once."""
    data = os.environ.get("RANKSHOT_DATA") or str(tmp_path_factory.mktemp("data"))
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "OMP_NUM_THREADS": "1", "RANKSHOT_DATA": data, "PYTHONPATH": paths, "NO_COLOR": "1"}


@pytest.fixture
def torchrun(environment, tmp_path):
    """torchrun(2, "train", …): as `torchrun --nproc-per-node 2 -m rankshot train …`; 0 is without torchrun."""
    began = []

    def started(processes, *arguments, more=()):
        together = [*TORCHRUN, "--standalone", f"--nproc-per-node={processes}"]
        by = together if processes else [*FOREGROUND, sys.executable]
        command = [*by, *more, *RANKSHOT, *map(str, arguments)]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        began.append(process)
        return process

    yield started
    for process in began:
        for each in (*workers_of(process), process.pid):
            kill(each)
        process.communicate(timeout=SOON)


@pytest.fixture
def run(torchrun):
    """The same, to its end: what was printed, and the exit code."""

    def finished(processes, *arguments, more=()):
        process = torchrun(processes, *arguments, more=more)
        output, _ = process.communicate(timeout=300)
        return output, process.returncode

    return finished


def workers_of(process):
    """Their process ids, the first one first."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            parent = int(re.search(r"^PPid:\s*(\d+)", (entry / "status").read_text(), re.MULTILINE)[1])
            if parent == process.pid:
                about = dict(line.partition("=")[::2] for line in (entry / "environ").read_text().split("\0"))
                found[int(about["RANK"])] = int(entry.name)
        except (OSError, TypeError, KeyError, ValueError):
            continue
    return [found[rank] for rank in sorted(found)]


def kill(process, how=signal.SIGKILL):
    with suppress(ProcessLookupError):
        os.kill(process, how)


def wait_for(folder, update):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (folder / "metrics.jsonl").exists() and any(line["update"] >= update for line in read_metrics(folder)):
            return
        time.sleep(0.005)
    raise AssertionError(f"{folder} has not come to update {update}")


def weights(folder):
    return read_tensors(folder / "state.safetensors")


def assert_equal(folder, expected):
    found = weights(folder)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name]), name


@pytest.fixture(scope="module")
def undisturbed(environment, tmp_path_factory):
    """The weights of two processes that were left alone."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    command = [*TORCHRUN, "--standalone", "--nproc-per-node=2", *RANKSHOT, "train", *SMALL, "--out", str(folder)]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, made.stderr
    return weights(folder)


def test_killed_and_resumed(torchrun, run, tmp_path, undisturbed):
    folder, expected = tmp_path / "run", undisturbed
    process = torchrun(2, "train", *SMALL, "--out", folder)
    wait_for(folder, 9)
    kill(workers_of(process)[1])
    output, _ = process.communicate(timeout=SOON)
    assert process.returncode != 0
    assert "[rank0]: Traceback" not in output
    shutil.copytree(folder, tmp_path / "alone")

    process = torchrun(2, "train", "--out", folder, "--resume")
    wait_for(folder, 24)
    for each in (process.pid, *workers_of(process)):
        kill(each)
    process.communicate(timeout=SOON)
    assert max(line["update"] for line in read_metrics(folder)) < 60

    output, code = run(2, "train", "--out", folder, "--resume")
    assert code == 0, output
    assert output.count(f"{folder}: update 60") == 1
    assert_equal(folder, expected)

    output, code = run(0, "train", "--out", tmp_path / "alone", "--resume")
    assert code == 0, output
    for name, tensor in weights(tmp_path / "alone").items():
        if name.startswith("model."):
            torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=1e-3, msg=name)


def test_torchrun_starts_it_again(torchrun, tmp_path, undisturbed):
    folder = tmp_path / "run"
    process = torchrun(2, "train", *SMALL, "--out", folder, more=["--max-restarts=1"])
    wait_for(folder, 9)
    kill(workers_of(process)[0])
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert_equal(folder, undisturbed)


def test_restarts_need_a_folder(run):
    output, code = run(2, "train", *SMALL, more=["--max-restarts=1"])
    assert code != 0
    message = "rankshot: torchrun may start this again (--max-restarts): name the run's folder with --out"
    assert output.count(message) == 2  # once each time


def test_ctrl_c_leaves_a_checkpoint(torchrun, run, tmp_path, undisturbed):
    folder = tmp_path / "run"
    process = torchrun(2, "train", *SMALL, "--out", folder)
    wait_for(folder, 9)
    kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=SOON)
    assert process.returncode != 0
    [update] = re.findall(r"stopped after update (\d+), and its checkpoint is in", output)
    assert 9 <= int(update) < 60
    assert "Traceback" not in output.partition("stopped after update")[0]
    output, code = run(2, "train", "--out", folder, "--resume")
    assert code == 0, output
    assert_equal(folder, undisturbed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "2", "--batch-classes", "2"], "batch_size is 2, and there are 3 processes"),
        (["--method", "maml", "--tasks", "1"], "maml does not learn from embeddings alone"),
        (["--memory", "900000"], "memory is 900000, and there are"),
    ],
)
def test_refused_once(run, tmp_path, options, message):
    began = time.monotonic()
    output, code = run(3 if "2" in options else 2, "train", *SMALL, *options, "--out", tmp_path / "run")
    assert code == 1
    assert output.count(f"rankshot: {message}") == 1
    assert not (tmp_path / "run").exists()
    assert time.monotonic() - began < SOON


def folder_of_images(folder, seed):
    random = torch.Generator().manual_seed(seed)
    for name in range(40):
        for number in range(5):
            path = folder / str(name) / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(torch.randint(256, (28, 28), generator=random, dtype=torch.uint8).numpy()).save(path)
    return ["--data", str(folder), "--network", "conv4", "--init", "None"]


@pytest.mark.parametrize("what", ["seed", "images"])
def test_other_options_in_another_process(environment, tmp_path, what):
    """As on two machines where something else was typed."""
    if what == "seed":
        options, message = (["--seed", "0"], ["--seed", "1"]), "seed is 0 in process 0 and 1 in process 1"
    else:
        options = [folder_of_images(tmp_path / f"images-{seed}", seed) for seed in (0, 1)]
        message = "training images is"
    with Listening() as port:
        pass
    outputs = []
    for rank in (0, 1):
        about = {"RANK": rank, "LOCAL_RANK": 0, "GROUP_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 1}
        about |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, *RANKSHOT, "train", *SMALL, "--validate-every", "0", *options[rank]]
        outputs.append(
            subprocess.Popen(
                [*command, "--out", str(tmp_path / "run")],
                env={**environment, **{name: str(value) for name, value in about.items()}},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    first, second = (process.communicate(timeout=SOON)[0] for process in outputs)
    assert f"rankshot: processes must be given the same: {message}" in first
    assert "rankshot:" not in second
    assert all(process.returncode == 1 for process in outputs)
    assert not (tmp_path / "run").exists()


class Listening:
    """A port that is free."""

    def __enter__(self):
        import socket

        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            return listening.getsockname()[1]

    def __exit__(self, *_):
        pass


def test_galleries_and_evaluations_are_those_of_one_process(run, tmp_path):
    for number in range(7):
        (tmp_path / "pictures").mkdir(exist_ok=True)
        Image.new("RGB", (40, 40), (30 * number, 200 - 20 * number, 90)).save(tmp_path / "pictures" / f"{number}.png")
    (tmp_path / "pictures" / "3b.png").write_bytes(b"nothing")
    told = {}
    for processes in (0, 2):
        output, code = run(processes, "gallery", "add", f"g{processes}", "pictures", "--model", "conv4-cub")
        assert code == 1, output
        assert output.count(f"g{processes}: 7 added, 0 there already, 1 unreadable; 7 in all") == 1
        with Gallery.open(tmp_path / f"g{processes}") as gallery:
            told[processes] = [
                (id, vector.tolist())
                for ids, vectors, *_ in gallery.store.chunks()
                for id, vector in zip(ids, vectors, strict=True)
            ]
    assert told[0] == told[2]

    found = []
    for processes in (0, 2):
        output, code = run(
            processes, "evaluate", "conv4-omniglot", "--data", "glyphs", "--episodes", "20", "--split", "val"
        )
        assert code == 0, output
        found.append([line for line in output.splitlines() if "±" in line])
    assert len(found[0]) >= 6
    assert found[0] == found[1]
    [written] = (tmp_path / "runs").glob("*/evaluation*.json")
    assert json.loads(written.read_text())
