"""What is intact of a damaged gallery, in a new one."""

from __future__ import annotations

from pathlib import Path

from .format_1 import Format1, is_format_1
from .local import LocalStore


def rescue(folder: Path, to: Path) -> tuple[LocalStore, list[str]]:
    """A new gallery of all that is intact, and a line for each thing that was lost or is uncertain."""
    old = Format1(folder) if is_format_1(folder) else LocalStore(folder)
    lost = old.verify()
    new = LocalStore.create(to, old.dimensions, old.about)
    for ids, vectors, metadata, sources in old.intact():
        new.add(vectors, ids, metadata, sources)
    return new, lost
