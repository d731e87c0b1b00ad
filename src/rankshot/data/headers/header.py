"""What the beginning of a picture tells: how large it is, and how much memory it takes to decode it."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Undecodable(ValueError):
    """A file that is no image, or none that should be decoded."""


class Header(NamedTuple):
    """How large a picture is, and what Pillow takes for it; what was measured is beside each number.

    kind     Pillow's name of its format
    stored   bytes that Pillow keeps of a pixel, at most
    extra    bytes that decoding takes beside the pixels, at most
    pixels   how many are stored, where it is decoded at less than its size
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
