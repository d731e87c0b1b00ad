"""The wheel, in a clean environment: it installs, imports and works, with its types and its licence inside."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import rankshot

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_DEVELOPERS = {"all", "bench", "docs", "test"}  # extras that are in no `rankshot[all]`

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
    assert any(name.endswith("licenses/NOTICE.md") for name in names)
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


def test_all_is_every_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    (asked,) = re.findall(r"^rankshot\[(.*)\]$", extras["all"][0])
    assert asked.split(",") == sorted(extras.keys() - OF_DEVELOPERS)


def test_every_version_says_the_same():
    assert f"\nversion: {rankshot.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {rankshot.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    pythons = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)}
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    (tested,) = re.findall(r"python: \[(.*)\]", workflow)
    assert pythons <= set(re.findall(r"[\d.]+", tested))
    assert PROJECT["requires-python"] == f">={min(pythons)}"


def test_every_weight_that_comes_along_has_a_notice():
    """With the terms of the images that it has seen, in the words of its card."""
    told = dict(re.findall(r"^\| `([\w-]+)` \| [^|]* \| ([^|]*) \|$", (ROOT / "NOTICE.md").read_text(), re.MULTILINE))
    cards = {path.parent.name: path.read_text() for path in (ROOT / "src/rankshot/models/weights").glob("*/README.md")}
    assert told.keys() == cards.keys()
    for name, terms in told.items():
        assert terms in cards[name], name


@pytest.mark.slow  # builds it twice
def test_a_release_is_whole(wheel, tmp_path):
    """The source archive has what tests and tables need, and makes the same wheel; both pass the checks of the index."""
    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT)  # the wheel from the source archive
    (archive,), (again,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {
        "README.md",
        "LICENSE",
        "NOTICE.md",
        "CITATION.cff",
        "Makefile",
        "tests/oracles.py",
        "results/tables.md",
    } <= names
    assert not [name for name in names if name.startswith(("runs/", "site/", ".venv/", "dist/"))]
    assert contents(again) == contents(wheel)
    run(sys.executable, "-m", "twine", "check", "--strict", archive, again)
    run(Path(sys.executable).with_name("check-wheel-contents"), again, cwd=ROOT)


def contents(wheel):
    """{name: digest} of all that a wheel holds."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: hashlib.sha256(opened.read(name)).hexdigest() for name in opened.namelist()}
