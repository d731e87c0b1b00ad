"""What the README tells a newcomer to run, run."""

import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


OWN_LOOP = ROOT / "examples" / "own_loop.py"


def first_and_last(printed):
    """((of digits seen, never seen) before, the same after)."""
    steps = re.findall(r"seen in training (\S+)   on digits never seen (\S+)", printed)
    return [[float(each) for each in steps[at]] for at in (0, -1)]


@pytest.mark.slow
def test_own_loop_learns_to_retrieve_what_it_never_saw():
    done = subprocess.run([sys.executable, OWN_LOOP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (seen_before, unseen_before), (seen_after, unseen_after) = first_and_last(done.stdout)
    assert seen_after > max(0.95, seen_before)
    assert unseen_after > unseen_before


def test_own_loop_in_short(capsys):
    """A tenth of its steps."""
    names = runpy.run_path(str(OWN_LOOP))
    names["main"].__globals__["STEPS"] = 40
    names["main"]()
    (seen_before, _), (seen_after, _) = first_and_last(capsys.readouterr().out)
    assert seen_after > seen_before + 0.1


@pytest.mark.slow  # other libraries, which take seconds to import
@pytest.mark.parametrize(
    ("example", "library"),
    [
        ("lightning_loop", "lightning"),
        ("hugging_face_trainer", "transformers"),
        ("pytorch_metric_learning_loop", "pytorch_metric_learning"),
    ],
)
def test_in_the_loops_of_other_libraries_it_learns_to_retrieve_what_it_never_saw(tmp_path, example, library):
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    path = ROOT / "examples" / f"{example}.py"
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ((before, after),) = re.findall(r"mAP on digits never seen: (\S+) before, (\S+) after", done.stdout)
    assert float(after) > float(before) + 0.03  # of three seeds the least was 0.05, of the small ViT
    assert not list(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.slow
def test_in_pipelines_of_scikit_learn_a_map_helps(tmp_path, drawn):
    path = ROOT / "examples" / "scikit_learn_pipeline.py"
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    new, new_mapped, known, known_mapped = (float(each) for each in re.findall(r"0\.\d+", done.stdout))
    assert new_mapped > new + 0.1
    assert known_mapped > known + 0.05


@pytest.mark.slow
def test_quickstart_in_short(tmp_path):
    """`make quickstart` with a few updates: the commands, the table, the report; and once more, to no harm."""
    command = ["make", "--no-print-directory", "quickstart", f"RUNS={tmp_path}", "UPDATES=30", "EPISODES=50"]
    for _ in range(2):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(r"untrained +map-dlm +siamese", done.stdout)
        (row,) = re.findall(r"1-shot 20-way .*", done.stdout)
        untrained, trained, _ = (float(each) for each in re.findall(r"([0-9.]+) ±", row))
        assert trained > untrained + 10
        assert (tmp_path / "map-dlm" / "report.html").exists()


@pytest.mark.slow  # torchrun
def test_two_processes_learn_what_one_does():
    example = str(ROOT / "examples" / "distributed_loop.py")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    printed = []
    for command in ([example], [*torchrun, example]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        found = re.findall(
            r"(\d) processes. mAP on digits never seen: (\S+) before, (\S+) after; weights (\S+)", done.stdout
        )
        printed.append([float(each) for each in found[0]])
    (one, *alone), (two, *together) = printed
    assert (one, two) == (1, 2)
    assert alone == pytest.approx(together, abs=1e-8)
    assert alone[1] > alone[0]
