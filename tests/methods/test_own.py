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
