"""The guides of docs/ work as they are written: every block of a page is run, in order, in a folder of its own."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^(?:<!-- (.+?) -->\n)?```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN = "not run: "

# Of each page: what must be installed, and what it prints.
GUIDES = {
    "start": ((), ["rankshot 0", "54 of the 60 images", r"new/Armenian-U\+0531/3\.png"]),
    "teach": ((), [r"\d\d% of 60 images, 12 classes", r"Rejection\(threshold="]),
    "search": (("milvus_lite",), ["everything is as it was written", r"96 new/\S+/3\.png", "elsewhere"]),
    "train": ((), ["before +after", "59 of the 60 images", "57 of the 60 images", "runs/glyphs: update 80"]),
    "many-gpus": ((), ["runs/two: update 10", "retrieval 20-way"]),
    "ship": (("onnxruntime", "onnx", "onnxscript"), [r"vectors without rankshot and with it: cosines of 1\.0000 and more"]),
    "data": ((), ["glyphs", r"\(\d+, 1, 28, 28\)"]),
}
ELSEWHERE = {
    "adapting": "tests/test_adapting_page.py",
    "extending": "tests/test_extending.py",
    "loss": "tests/test_documentation.py",
    "mathematics": "tests/test_documentation.py",
    "networks": "tests/test_extending.py",
    "serve": "tests/test_serve_page.py",
}
OF_HOURS = {"systems": "its command trains on a GPU"}


def blocks(page):
    """(language, text) of what is to be run."""
    found = BLOCK.findall((DOCS / f"{page}.md").read_text())
    return [(kind, text) for note, kind, text in found if not note.startswith(NOT_RUN)]


def pictures():
    """The block of docs/start.md that draws the folders which the other pages use."""
    (found,) = [text for _, text in blocks("start") if "glyphs" in text]
    return found


@pytest.mark.slow  # each starts several processes, one after another
@pytest.mark.parametrize("page", GUIDES)
def test_every_block_of(page, tmp_path, drawn):
    packages, printed = GUIDES[page]
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed, and a block needs it")
    root = tmp_path / "prepared"  # of its own: `rankshot data` lists and verifies all of it
    shutil.copytree(drawn, root / drawn.name)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RANKSHOT_DATA": str(root),
        "PYTHONUNBUFFERED": "1",
    }
    # As one program, since Python blocks go on with what those before them have made.
    before = [] if page == "start" else [("python", pictures())]
    script = "import subprocess\n\n" + "\n".join(
        text
        if kind == "python"
        else f"subprocess.run({'set -e;' + text!r}, shell=True, check=True, executable='/bin/bash')"
        for kind, text in [*before, *blocks(page)]
    )
    place = tmp_path / "reader"
    place.mkdir()
    (place / "page.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    for expected in printed:
        assert re.search(expected, done.stdout + done.stderr), f"{expected} is not in\n{done.stdout}"


def test_every_page_with_blocks_is_run_somewhere():
    for path in DOCS.glob("*.md"):
        if BLOCK.search(path.read_text()):
            known = GUIDES.keys() | ELSEWHERE.keys() | OF_HOURS.keys()
            assert path.stem in known, f"the blocks of {path.name} are run by no test"
    assert all((DOCS.parent / file).is_file() for file in ELSEWHERE.values())


def test_what_is_not_run_says_why():
    for path in DOCS.glob("*.md"):
        notes = [note for note, _, _ in BLOCK.findall(path.read_text()) if note.startswith(NOT_RUN)]
        assert all(len(note) > len(NOT_RUN) + 10 for note in notes)


def test_lines_without_rankshot_are_those_of_the_example():
    example = (DOCS.parent / "examples" / "onnx_without_rankshot.py").read_text()
    functions = example[example.index("def embed(") : example.index("if __name__")].strip()
    assert f"\n{functions}\n```" in (DOCS / "ship.md").read_text()
