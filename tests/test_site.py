"""The site that `make docs` builds: without a warning, without dead links, and with nothing from elsewhere."""

import importlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import complaints, every, fits, found, prefer, screen, start, until

import rankshot
from benchmarks.notebooks import NOTEBOOKS

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings_handlers", "latex2mathml")
PARTS = ("ranking", "losses", "models", "data", "fewshot", "methods", "training", "gallery", "adaptation", "report")
MAIN = (
    "index",
    "start",
    "teach",
    "train",
    "mathematics",
    "faq",
    "glossary",
    "paper",
    "api/losses",
    "notebooks/first_steps",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site."""
    for package in NEEDED:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Page(HTMLParser):
    """Where a page leads, what it loads, and the places within it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.assets, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and given.get("href") and given.get("rel") not in ("canonical", "next", "prev"):
            self.assets.append(given["href"])
        if given.get("src"):
            self.assets.append(given["src"])


@pytest.mark.slow
def test_no_dead_links_and_nothing_from_elsewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 30
    wrong = []
    for path, page in pages.items():
        wrong += [f"{path.name} loads {asset}" for asset in page.assets if re.match(r"(https?:)?//", asset)]
        for link in [*page.links, *page.assets]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":  # whose links start at the root of a server
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)} points to {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places | {"__top"}:
                wrong.append(f"{path.relative_to(site)} points to {link}, and there is no such place")
    for path in site.rglob("*.css"):
        wrong += [f"{path.name} loads {url}" for url in re.findall(r"url\(['\"]?((?:https?:)?//[^)]*)", path.read_text())]
    assert not wrong


@pytest.mark.slow
def test_formulas_are_mathml(site):
    text = (site / "mathematics.html").read_text()
    assert text.count("<math") > 40
    assert "arithmatex" not in text
    assert "\\frac" not in text


@pytest.mark.slow
def test_notebooks_show_what_their_code_prints_and_draws(site):
    for path in NOTEBOOKS:
        page = (site / "notebooks" / f"{path.stem}.html").read_text()
        cells = json.loads(path.read_text())["cells"]
        pictures = [data for cell in cells for data in cell.get("outputs", ()) if "image/png" in data.get("data", ())]
        assert page.count(f'src="{path.stem}-') == len(pictures)
        assert page.count('<pre class="output">') >= 3
        assert (site / "notebooks" / path.name).read_bytes() == path.read_bytes()  # to download


@pytest.mark.slow
def test_the_reference_has_every_public_name(site):
    overview = (site / "api" / "index.html").read_text()
    assert [name for name in rankshot.__all__ if name != "__version__" and f"rankshot.{name}<" not in overview] == []
    names = set()
    for part in (*PARTS, "integrations.pml"):
        names |= {f"rankshot.{part}.{name}" for name in importlib.import_module(f"rankshot.{part}").__all__}
    places = set().union(*(Page(path).places for path in (site / "api").glob("*.html")))
    assert not names - places


@pytest.fixture(scope="module")
def browser():
    opened = start()
    yield opened
    opened.quit()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_load_nothing_from_elsewhere(site, browser, width, scheme):
    """Opened as files, as a person who has built it does."""
    with screen(browser, width, scheme):
        for name in MAIN:
            browser.get((site / f"{name}.html").as_uri())
            loaded = browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
            assert all(each.startswith("file:") for each in loaded), name
            assert fits(browser), name
            broken = "return [...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src)"
            assert browser.execute_script(broken) == [], name
            assert complaints(browser) == [], name
            if folder := os.environ.get("RANKSHOT_SCREENSHOTS"):
                browser.save_screenshot(str(Path(folder, f"site-{name.replace('/', '-')}-{width}-{scheme}.png")))


def test_search_works_without_a_server(site, browser):
    browser.set_window_size(1280, 900)
    prefer(browser, "light")
    browser.get((site / "index.html").as_uri())
    found(browser, "input.md-search__input").click()
    found(browser, "input.md-search__input").send_keys("alpha")
    until(browser, lambda: every(browser, ".md-search-result__item"))
    hits = " ".join(each.get_attribute("href") for each in every(browser, ".md-search-result__link"))
    assert "mathematics.html" in hits
