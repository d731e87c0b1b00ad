"""What a picture will take, from its first bytes and before Pillow sees it: `look`. A fixed list of formats, one file each.

Pillow believes what a header says, and some of its decoders take far more memory or time than a picture has pixels. So the
structure of a file is walked first; what is out of all proportion is refused, and the rest tells how many bytes it needs.
"""

from __future__ import annotations

from collections.abc import Callable

from . import bmp, gif, jpeg, jpeg2000, png, ppm, tiff, webp
from .directories import check_exif
from .header import Header, Undecodable

__all__ = ["KINDS", "MOST_PIXELS", "Header", "Undecodable", "check_exif", "look"]

MOST_PIXELS = 80_000_000  # a third of a gigabyte as RGB
"""The largest picture that is decoded, in pixels: a third of a gigabyte as RGB."""
MOST_AT_LESS = 170_000_000  # of a JPEG that is decoded at less than its size; Pillow refuses some more
NO_READER = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis")  # brands of files with boxes
KINDS: dict[bytes, Callable[[bytes, tuple[int, int] | None], Header]] = {
    b"BM": bmp.look,
    b"GIF87a": gif.look,
    b"GIF89a": gif.look,
    b"\xff\xd8\xff": jpeg.look,
    b"\x89PNG\r\n\x1a\n": png.look,
    b"RIFF": webp.look,
    b"\xff\x4f\xff\x51": jpeg2000.look,
    b"\0\0\0\x0cjP  \r\n\x87\n": jpeg2000.look,
    **dict.fromkeys((b"II\x2a\0", b"II\0\x2a", b"II\x2b\0", b"MM\0\x2a", b"MM\x2a\0", b"MM\0\x2b"), tiff.look),
    **dict.fromkeys((b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"Pf"), ppm.look),
}
"""The formats that are read: the first bytes of a file, and the function that looks at it."""


def look(content: bytes, draft: tuple[int, int] | None = None) -> Header:
    """Look at the first bytes of a file: what picture it is, and what decoding it takes. Nothing is decoded.

    Args:
        content: of the file.
        draft: (width, height) that is enough: large JPEGs are then decoded at a half, a quarter or an eighth of their
            size.

    Returns:
        The `Header`.

    Raises:
        Undecodable: if it is no image, of a format that is not read, damaged, or too large.

    Examples:
        >>> import io
        >>> from PIL import Image
        >>> from rankshot.data import headers
        >>> file = io.BytesIO()
        >>> Image.new("L", (32, 24)).save(file, "PNG")
        >>> header = headers.look(file.getvalue())
        >>> header.kind, header.width, header.height, header.stored
        ('PNG', 32, 24, 1)
    """
    for start, looked in KINDS.items():
        if content.startswith(start):
            header = looked(content, draft)
            break
    else:
        if content[4:8] == b"ftyp" and content[8:12] in NO_READER:
            raise Undecodable("HEIC and AVIF cannot be read here: save it as JPEG or PNG")
        raise Undecodable("no image, or of an unknown kind")
    size = header.width * header.height
    most = MOST_AT_LESS if header.pixels < size else MOST_PIXELS
    if size > most or header.pixels > MOST_PIXELS:
        raise Undecodable(f"{header.width}x{header.height} pixels are more than {most}: a decompression bomb?")
    return header
