"""A method of a user's own: the example of the documentation, from training to the table."""

import subprocess
from pathlib import Path

import pytest

from rankshot.methods import load_systems

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_method.py"


def run(command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def test_the_example(rankshot, tmp_path):
    small = ["--filters", "8", "--updates", "20", "--validate-every", "10", "--validation-episodes", "10"]
    chosen = ["--load", EXAMPLE, "--method", "centre", "--options", "pull=0.1"]
    done = run(rankshot("train", "--run", tmp_path / "run", *chosen, *small))
    assert done.returncode == 0, done.stderr
    done = run(rankshot("evaluate", tmp_path / "run", "--load", EXAMPLE, "--episodes", "10", "--untrained"))
    assert done.returncode == 0, done.stderr
    assert "untrained" in done.stdout
    assert "centre" in done.stdout
    done = run(rankshot("train", "--run", tmp_path / "other", "--method", "centre"))
    assert done.returncode == 1
    assert "unknown method 'centre'" in done.stderr


NETWORK = """
import torch
from helper import sharpness
from rankshot.methods import Episodic, RuledNetwork, network, register


@network("by-median")
class ByMedian(RuledNetwork):
    def class_scores(self, support, queries):
        medians = support.median(2).values
        return -sharpness * torch.cdist(queries, medians)


@register("by-median")
class Median(Episodic):
    @classmethod
    def network(cls, given):
        return {"name": "by-median", "embedder": given.embedder}
"""


def test_a_network_with_a_rule_of_its_own(rankshot, tmp_path):
    """With a file beside it, that it imports."""
    (tmp_path / "median.py").write_text(NETWORK)
    (tmp_path / "helper.py").write_text("sharpness = 2.0\n")
    small = ["--filters", "8", "--updates", "4", "--validate-every", "2", "--validation-episodes", "5"]
    chosen = ["--load", tmp_path / "median.py", "--method", "by-median", "--options", "shot=3"]
    size = ["--batch-classes", "5", "--batch-size", "30"]
    done = run(rankshot("train", "--run", tmp_path / "run", *chosen, *small, *size))
    assert done.returncode == 0, done.stderr
    assert "3-shot 20-way" in (tmp_path / "run" / "metrics.jsonl").read_text()  # it is validated as it is trained
    done = run(rankshot("evaluate", tmp_path / "run", "--load", tmp_path / "median.py", "--episodes", "5"))
    assert done.returncode == 0, done.stderr


def test_a_system_without_a_loss(rankshot, tmp_path):
    (tmp_path / "own.py").write_text(
        "from rankshot.methods import Method, register\n@register('nothing')\nclass Nothing(Method):\n    pass\n"
    )
    done = run(rankshot("train", "--run", tmp_path / "run", "--load", tmp_path / "own.py", "--method", "nothing"))
    assert done.returncode == 1
    assert done.stderr == "rankshot: the method 'nothing' has no loss: give its class a `loss(embeddings, labels)`\n"


def test_files_that_bring_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*none\.py"):
        load_systems([tmp_path / "none.py"])
    (tmp_path / "empty.py").write_text("")
    for files in (["empty.py"], [EXAMPLE, "empty.py"]):
        with pytest.raises(ValueError, match=r"empty\.py registers no method: decorate a class"):
            load_systems([tmp_path / each for each in files])
    (tmp_path / "broken.py").write_text("x = = 1")
    with pytest.raises(ValueError, match=r"broken\.py cannot be run: SyntaxError: invalid syntax \(.*line 1\)"):
        load_systems([tmp_path / "broken.py"])
    assert load_systems([EXAMPLE]) == load_systems([EXAMPLE]) == ["centre"]
    (tmp_path / "thief.py").write_text(EXAMPLE.read_text())
    with pytest.raises(ValueError, match=r"there is a method 'centre' already, in .*own_method\.py"):
        load_systems([tmp_path / "thief.py"])
