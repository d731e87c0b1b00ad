"""What the documentation shows is what happens: README blocks and docstring examples are run."""

import ast
import importlib
import re
from pathlib import Path

import pytest
import torch
from docstrings import examples_of, run
from test_api_reference import RUN_HERE
from test_guides import GUIDES

from benchmarks.tables import pages

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RESULT = re.compile(r"^(\w.*?)  # (\[\[.*?\]\])", re.MULTILINE)  # a line that says what it gives
ALONE = {"adapting.md", "extending.md", "networks.md", "serve.md", *(f"{guide}.md" for guide in GUIDES)}  # run elsewhere
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
    """With the names of their module. Those of public names are run elsewhere, with nothing imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    tests = examples_of(module)
    assert tests, "its examples are in no docstring that doctest finds"
    run([test for test in tests if not is_run_elsewhere(test.name)], tmp_path, monkeypatch)


def is_run_elsewhere(name):
    """Of a public name, or of something that is defined in a public class."""
    return any(name == public or name.startswith(f"{public}.") for public in RUN_HERE)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} points to {target}"


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_last_measurement(page):
    assert page.read_text() == pages.filled(page), "run `make tables`"


def messages():
    """All texts of the package, with "…" for what is filled in."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = re.sub("%[rsd]", "…", node.value)
            else:
                continue
            yield re.sub("…+", "…", text)


def test_every_message_of_the_faq_exists():
    quoted = re.findall(r"^```text\n(.*?)\n```", (ROOT / "docs" / "faq.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(quoted) > 20
    known = set(messages())
    for message in quoted:
        assert any(message in each for each in known), f"rankshot never says: {message}"


def test_every_promise_has_its_test():
    told = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "promises.md").read_text())
    assert len(told) > 20
    for file, name in told:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"
