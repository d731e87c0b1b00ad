"""What the documentation shows is what happens: README blocks and docstring examples are run."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

from benchmarks.tables import pages

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RESULT = re.compile(r"^(\w.*?)  # (\[\[.*?\]\])", re.MULTILINE)  # a line that says what it gives
ALONE = ("adapting.md", "extending.md", "serve.md", "tutorial.md")  # which have tests of their own
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in ALONE],
    ids=lambda page: page.name,
)
def test_python_blocks_run(page):
    """The blocks of a page run one after another, as a reader would type them."""
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, page.name, "exec"), names)
        for shown, value in RESULT.findall(block):
            assert eval(shown, names).tolist() == eval(value), shown
    if page.name == "README.md":
        assert names, "the README has no example"


SOURCE = ROOT / "src" / "rankshot"
WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_docstring_examples(path, tmp_path, monkeypatch):
    """Each docstring in an empty folder of its own, since some write files."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for number, test in enumerate(doctest.DocTestFinder(exclude_empty=True).find(module)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner.run(test)
    assert runner.tries > 0, "its examples are in no docstring that doctest finds"
    assert runner.failures == 0


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} points to {target}"


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_last_measurement(page):
    assert page.read_text() == pages.filled(page), "run `make tables`"


def test_every_promise_has_its_test():
    told = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "promises.md").read_text())
    assert len(told) > 20
    for file, name in told:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"
