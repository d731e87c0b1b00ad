"""What was looked for and what was found, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import ImageDraw, ImageFont

from rankshot.data.decoding import Undecodable, picture_of
from rankshot.data.sheet import blank, write_picture
from rankshot.preprocess import Preprocess

from .pictures import pixels_of
from .store import Hit

SIDE, GAP, CAPTION, PER_ROW = 128, 6, 18, 6


def hits_sheet(queries: Sequence[Any], hits: Sequence[Hit], path: Path) -> None:
    """The queries, framed, then the hits with their cosine. An id is taken for a path; what is no image stays grey."""
    cells = [
        *((query, "query", "#c8452c") for query in queries),
        *((hit.id, f"{hit.similarity:.3f}", None) for hit in hits),
    ]
    rows = -(-len(cells) // PER_ROW)
    width, height = SIDE + GAP, SIDE + CAPTION + GAP
    sheet = blank(GAP + min(len(cells), PER_ROW) * width, GAP + rows * height)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    for number, (image, caption, frame) in enumerate(cells):
        left, top = GAP + number % PER_ROW * width, GAP + number // PER_ROW * height
        try:
            sheet.paste(picture_of(pixels_of(image, Preprocess(3, SIDE, SIDE))), (left, top))
        except Undecodable:
            draw.rectangle((left, top, left + SIDE, top + SIDE), fill="#dddddd")
        if frame:
            draw.rectangle((left - 2, top - 2, left + SIDE + 1, top + SIDE + 1), outline=frame, width=2)
        draw.text((left, top + SIDE + 2), caption, fill="black", font=font)
    write_picture(sheet, path)
