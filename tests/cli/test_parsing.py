"""What was typed: the options that decide which others there are."""

from pathlib import Path

import pytest

from rankshot.cli.main import main
from rankshot.cli.parsing import peeked

LOSS = """
from rankshot import losses

@losses.register("{name}")
def {name}(embeddings, labels):
    return embeddings.square().mean()
"""


def test_files_of_one_s_own_are_all_loaded_and_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two", "three"):
        Path(f"{name}.py").write_text(LOSS.format(name=name))
    loads = ["--load", "one.py", "two.py", "--load=three.py"]
    assert peeked(loads).load == [Path("one.py"), Path("two.py"), Path("three.py")]
    few = ["--updates", "1", "--validate-every", "0", "--device", "cpu", "--out", "run"]
    assert main(["train", *loads, "--method", "one", *few]) == 0
    told = capsys.readouterr().out
    assert "next: rankshot evaluate run --load=one.py --load=two.py --load=three.py" in told
    command = told[told.index("next: rankshot ") :].splitlines()[0].split()[2:]
    assert peeked(command).load == [Path("one.py"), Path("two.py"), Path("three.py")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--load"],
        ["train", "--load", "--out", "run"],
        ["gallery", "info", "g", "--load"],
        ["evaluate", "run", "--load", "--episodes", "3"],
    ],
)
def test_load_needs_a_file(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert capsys.readouterr().err == "rankshot: --load needs a file: --load FILE\n"
