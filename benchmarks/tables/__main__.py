"""Puts the figures that were measured last into the pages."""

from .pages import PAGES, filled

for page in PAGES:
    page.write_text(filled(page))
