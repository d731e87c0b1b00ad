"""BMP."""

from __future__ import annotations

from .header import Header, Undecodable, numbers

RUN_LENGTHS = (1, 2)  # ways of packing that Pillow decodes in Python
MOST_RUN_LENGTH = 2**21  # pixels: a second or two
STORED = {1: 1, 2: 1, 4: 1, 8: 1}  # by bits of a pixel; else 4


def look(content: bytes, draft: object) -> Header:
    (size,) = numbers("<I", content, 14)
    if size == 12:
        width, height, _, bits = numbers("<HHHH", content, 18)
        packing = 0
    else:
        width, height, _, bits, packing = numbers("<IiHHI", content, 18)
    height = abs(height)
    pixels, stored, extra = width * height, STORED.get(bits, 4), 0
    if packing in RUN_LENGTHS:
        if pixels > MOST_RUN_LENGTH:
            raise Undecodable(f"{width}x{height} pixels are too many for a BMP of run lengths: {MOST_RUN_LENGTH} are read")
        extra = 3 * pixels  # it grows as a bytearray, and is copied
    return Header("BMP", width, height, stored, extra, pixels)
