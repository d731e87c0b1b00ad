"""Pictures for people to look at, drawn anew and upright: small for a page full of them, or large for one alone.

A photograph of a camera has a hundred times the bytes of its small view. And of a file that is drawn anew nothing gets out
but what can be seen: neither where it was taken, nor a file that is no picture at all.
"""

from __future__ import annotations

import io

from fastapi.responses import Response

from rankshot.data.decoding import Undecodable, view
from rankshot.gallery.pictures import file_of

from .workspace import Unknown

SMALL, LARGE = 256, 1600  # pixels of the longer side
QUALITY = 88
AT_ONCE = 4  # that are drawn: each holds a file and its pixels meanwhile
UNREADABLE = "its file is not there any more, or can no longer be read"


def drawn(content: bytes, longest: int) -> bytes:
    """The picture in a file, as a JPEG that is no larger. Within the memory that all pictures are decoded in."""
    file = io.BytesIO()
    try:
        view(content, longest).save(file, "JPEG", quality=QUALITY)
    except Undecodable:
        raise Unknown(UNREADABLE) from None
    return file.getvalue()


def drawn_file(path: str, longest: int) -> bytes:
    try:
        with file_of(path) as content:
            return drawn(content, longest)
    except Undecodable:
        raise Unknown(UNREADABLE) from None


def answer(jpeg: bytes, kept: str) -> Response:
    """`kept`: for how long a browser may do so."""
    return Response(jpeg, media_type="image/jpeg", headers={"content-disposition": "inline", "cache-control": kept})
