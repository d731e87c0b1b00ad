"""The wheel, in a clean environment: it installs, imports and works, with its types and its licence inside."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import rankshot

ROOT = Path(__file__).parent.parent

USE = """
import torch, rankshot
embeddings = torch.randn(40, 8, requires_grad=True)
loss = rankshot.losses.RankingLoss()(embeddings, torch.arange(40) % 5)
loss.backward()
assert embeddings.grad.abs().sum() > 0
print(rankshot.__version__, rankshot.__file__)
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_it_does_not_wait_for_the_compiler():
    """Which takes as long to import as the rest of torch."""
    run(sys.executable, "-c", "import sys, rankshot.cli.train; assert 'torch._dynamo' not in sys.modules")


def test_it_imports_what_is_asked_for_when_it_is():
    """So that the command line hears Ctrl-C before torch is there."""
    code = """
import sys, rankshot
assert "torch" not in sys.modules
assert set(rankshot.__all__) <= set(dir(rankshot))
assert rankshot.losses.RankingLoss and rankshot.models.Conv4 and rankshot.methods.METHODS and rankshot.ranking.dlm
assert rankshot.from_pretrained is rankshot.models.from_pretrained
assert not {"PIL", "sklearn", "tyro"} & sys.modules.keys(), "more than torch is asked for"
assert "rankshot.report" not in sys.modules and rankshot.report.write_report
from rankshot import *
assert Gallery is rankshot.Gallery and losses is rankshot.losses
try:
    rankshot.none
except AttributeError as error:
    assert str(error) == "module 'rankshot' has no attribute 'none'"
"""
    run(sys.executable, "-c", code)


def test_what_is_inside(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name == f"rankshot-{rankshot.__version__}-py3-none-any.whl"
    assert "rankshot/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "rankshot").rglob("*.py")}
    assert "rankshot/serve/page/index.html" in names
    assert sources == {name for name in names if name.endswith(".py")}


@pytest.mark.slow  # pip unpacks all of torch
def test_it_installs_into_a_clean_environment_and_works(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, env=clean)
    output = run(python, "-W", "error", "-c", USE, cwd=tmp_path, env=clean)
    assert output.startswith(rankshot.__version__)
    assert str(tmp_path / "env") in output
    run(python, "-m", "pip", "check", env=clean)
