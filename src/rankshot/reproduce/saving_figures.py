"""A figure of matplotlib as a PNG file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rankshot.files import check_no_link, write_whole

DPI = 160
COLOURS = 128  # as many as a drawing needs; the file is a third as large


def save(figure: Any, path: Path, *, dpi: int = DPI) -> Path:
    """The same bytes for the same figure: matplotlib's version is left out."""
    from PIL import Image  # as matplotlib: for who draws

    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=dpi, metadata={"Software": None})
    Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(content, "png", optimize=True)
    check_no_link(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())
    return path
