"""What the beginning of a picture tells: how large it is, and how much memory it takes to decode it."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Undecodable(ValueError):
    """A file that is no image, or an image that should not be decoded.

    Examples:
        >>> from rankshot.data import headers
        >>> try:
        ...     headers.look(b"no picture")
        ... except headers.Undecodable as error:
        ...     print(error)
        no image, or of an unknown kind
    """


class Header(NamedTuple):
    """The size of a picture, and the memory that Pillow takes to decode it.

    Attributes:
        kind: Pillow's name of its format.
        width: in pixels.
        height: in pixels.
        stored: bytes that Pillow keeps of a pixel, at most.
        extra: bytes that decoding takes beside the pixels, at most.
        pixels: how many are stored, where it is decoded at less than its size.

    Examples:
        >>> import io
        >>> from PIL import Image
        >>> from rankshot.data import headers
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (640, 480)).save(file, "JPEG")
        >>> header = headers.look(file.getvalue(), draft=(84, 84))  # a quarter of each side is enough
        >>> header.kind, header.width, header.height, header.pixels
        ('JPEG', 640, 480, 19200)
    """

    kind: str
    width: int
    height: int
    stored: int
    extra: int
    pixels: int


def numbers(form: str, content: bytes, offset: int) -> tuple[int, ...]:
    """Of a `struct`, at a place within the file."""
    try:
        return struct.unpack_from(form, content, offset)
    except struct.error:
        raise Undecodable("its header is cut short") from None
