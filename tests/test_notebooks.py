"""The notebooks run as they are, learn something, and hold what they print."""

import json
import re

import pytest

from benchmarks.notebooks import NOTEBOOKS, executed


def text_of(notebook):
    """All that it prints."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return "\n".join(
        "".join(part if isinstance(part, str) else "".join(part))
        for output in outputs
        for part in (output.get("text", ""), output.get("data", {}).get("text/plain", ""))
    )


def per_cents(pattern, text):
    return [float(found) for found in re.findall(pattern, text)]


def learned(name, text):
    """Whether a notebook has come out as its text says."""
    if name == "first_steps":
        _, untrained, trained = per_cents(r"retrieval 20-way: ([\d.]+)", text)
        return trained > untrained + 20
    if name == "own_images":
        before, after = per_cents(r"(\d+)% of the new images are right", text)
        return after > before and "a new letter" in text
    curves = re.findall(r"mAP on unseen digits ([\d.]+) before, ([\d.]+) after", text)
    return len(curves) == 3 and all(float(after) > float(before) for before, after in curves)


@pytest.fixture
def notebook(request):
    """Whoever runs one takes long: see `conftest.SLOW`."""
    return request.param


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem, indirect=True)
def test_it_runs_and_learns(notebook, drawn):
    assert learned(notebook.stem, text_of(executed(notebook)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_holds_what_it_printed(path):
    stored = json.loads(path.read_text())
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run `make notebooks`"
    assert learned(path.stem, text_of(stored))
    assert not re.search(r"/(tmp|home|root)/", json.dumps(stored)), "a path of somebody's machine"
    assert path.stat().st_size < 250_000


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "own_images", "own_loop"]
