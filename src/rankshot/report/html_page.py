"""A page as one file with everything inside, readable in light and dark, offline and in ten years."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources

from rankshot.version import __version__

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
<main>
<h1>{title}</h1>
<p class=lead>{lead}</p>
{sections}
<footer>rankshot {version}</footer>
</main>
</html>
"""


def html_page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """Title and lead as text; the content of each section, by its heading, as HTML."""
    return PAGE.format(
        title=escape(title),
        style=resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8"),
        lead=escape(lead),
        sections="\n".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections.items()),
        version=__version__,
    )
