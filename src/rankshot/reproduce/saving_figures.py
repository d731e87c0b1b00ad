"""A figure of matplotlib as a PNG file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rankshot.files import check_no_link, write_whole

DPI = 160


def save(figure: Any, path: Path, *, dpi: int = DPI) -> Path:
    """The same bytes for the same figure: matplotlib's version is left out."""
    content = io.BytesIO()
    figure.savefig(content, dpi=dpi, metadata={"Software": None})
    check_no_link(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())
    return path
