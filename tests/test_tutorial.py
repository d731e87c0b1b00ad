"""The tutorial works as it is written: every block is run, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankshot import data

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # a dozen processes, one after another
def test_every_block(tmp_path, data_root):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed, and the last block needs it")
    data.load("glyphs", "test", data_root)
    blocks = BLOCK.findall(TUTORIAL.read_text())
    assert len(blocks) >= 8
    # As one program, since Python blocks go on with what those before them have made.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = "import subprocess\n\n" + "\n".join(
        text if kind == "python" else f"subprocess.run({text!r}, shell=True, check=True, executable='/bin/bash')"
        for kind, text in blocks
    )
    (tmp_path / "tutorial.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "tutorial.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+% of 60 images, one of 12 classes each", done.stdout)
    (accuracy,) = re.findall(r"(\d+)% of 60 images", done.stdout)
    assert int(accuracy) > 80
    assert "Rejection(threshold=" in done.stdout
    assert "everything is as it was written" in done.stdout
    assert (tmp_path / "found.png").stat().st_size > 5000
    assert (tmp_path / "answers.csv").read_text().count("\n") == 61
    (cosine,) = re.findall(r"vectors without rankshot and with it: cosines of (\S+) and more", done.stdout)
    assert float(cosine) == 1


def test_its_lines_without_rankshot_are_those_of_the_example():
    example = (TUTORIAL.parents[1] / "examples" / "onnx_without_rankshot.py").read_text()
    functions = example[example.index("def embed(") : example.index("if __name__")].strip()
    assert f"\n{functions}\n```" in TUTORIAL.read_text()
