"""What `make docs` adds to mkdocs: files from outside docs/, every public name in the reference, formulas as MathML.

Pages link to files of the repository, such as ../examples/own_loop.py, so that the links work wherever the repository is
shown. The site gets a copy of every file that is linked to. Formulas become MathML while the site is built: a browser
shows them without any script or font of ours.
"""

from __future__ import annotations

import ast
import html
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)\s#])")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
REFERENCE = re.compile(r"<!-- every name of ([\w.]+) -->")
PAGES = (
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "NOTICE.md",
    "results/README.md",
    "results/tables.md",
)  # beside docs/*.md


def place_of(page: File) -> Path:
    """Where the source of a page lies. A page without a file of its own is a notebook (notebook_pages.py)."""
    if page.abs_src_path is None:
        return ROOT / Path(page.src_uri).with_suffix(".ipynb")
    return Path(page.abs_src_path).resolve()


def place_in_site(path: Path) -> PurePosixPath:
    """Of a file of the repository: what is in docs/ is at the top, everything else lies as it does there."""
    inside = path.relative_to(ROOT)
    if path.suffix == ".ipynb":
        inside = inside.with_suffix(".md")
    return PurePosixPath(*(inside.parts[1:] if inside.parts[0] == "docs" else inside.parts))


def linked(link: str, page: Path) -> Path | None:
    """The file of the repository that a link of a page leads to; of a folder its README.md."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    target = Path(os.path.normpath(page.parent / link))
    target = target / "README.md" if target.is_dir() else target
    return target if target.is_file() and target.is_relative_to(ROOT) else None


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from outside docs/, and every file that a page links to."""
    sources = [place_of(file) for file in files.documentation_pages()] + [ROOT / name for name in PAGES]
    wanted = {ROOT / name for name in PAGES}
    for page in sources:
        found = (linked(link, page) for link in LINK.findall(page.read_text()))
        wanted |= {target for target in found if target and not target.is_relative_to(ROOT / "docs")}
    wanted = {path for path in wanted if path.suffix != ".ipynb"}
    for path in sorted(wanted):
        files.append(File.generated(config, str(place_in_site(path)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between files of the repository, as they are in the site."""
    source = place_of(page.file)
    start = place_in_site(source).parent

    def moved(match: re.Match[str]) -> str:
        target = linked(match[1], source)
        return PurePosixPath(os.path.relpath(place_in_site(target), start)).as_posix() if target else match[1]

    return REFERENCE.sub(reference, LINK.sub(moved, markdown))


def reference(match: re.Match[str]) -> str:
    """What mkdocstrings makes the reference of a package from: all that its `__all__` lists."""
    path = ROOT / "src" / Path(*match[1].split(".")) / "__init__.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return "\n\n".join(f"::: {match[1]}.{name}" for name in ast.literal_eval(node.value))
    raise ValueError(f"{path} has no __all__")


def on_page_content(html: str, **_: Any) -> str:  # mkdocs names the argument
    """Formulas, from LaTeX to MathML."""
    return FORMULA.sub(as_mathml, html)


def as_mathml(match: re.Match[str]) -> str:
    """One formula."""
    shown = convert(html.unescape(match[3]).strip(), display="block" if match[2] == "[" else "inline")
    return f'<div class="formula">{shown}</div>' if match[2] == "[" else shown
