"""TIFF: the first picture of it, packed in one of the usual ways."""

from __future__ import annotations

from .directories import BYTES_A_VALUE, directory, order_of, start_of, value
from .header import Header, Undecodable

WIDTH, HEIGHT, BITS, PACKING, COLOURS, ORIENTATION, SAMPLES, ROWS = 256, 257, 258, 259, 262, 274, 277, 278
TILE_WIDTH, TILE_HEIGHT = 322, 323
ONE_SAMPLE = (0, 1, 3, 4)  # white is zero, black is zero, a palette, a mask
STRIPS = (273, 279, 324, 325)  # where strips and tiles are, and how long
MOST_STRIPS, A_STRIP = 2**17, 400  # Pillow takes some microseconds and bytes for each
WITHIN = (34665, 34853, 40965)  # tags that point at further directories, which Pillow reads too
# Others that Pillow knows ask for memory as they like (LZMA, Zstandard), or are a format within the format (WebP).
PLAIN, JPEG = 1, 7
CCITT, LZW, DEFLATE, PACKBITS = (2, 3, 4), 5, (8, 32946), 32773
PACKINGS = (PLAIN, *CCITT, LZW, JPEG, *DEFLATE, PACKBITS)


def look(content: bytes, draft: object) -> Header:
    order = order_of(content)
    tags, size, values = directory(content, start_of(content, order), order)

    def tag_value(tag: int, usual: int) -> int:
        return value(content, tags.get(tag), order, usual)

    width, height, packing = tag_value(WIDTH, 0), tag_value(HEIGHT, 0), tag_value(PACKING, 1)
    if packing not in PACKINGS:
        raise Undecodable(f"a TIFF packed by method {packing} is not read: CCITT, LZW, JPEG, deflate and PackBits are")
    strips = max((tags[tag].many for tag in STRIPS if tag in tags), default=0)
    if strips > MOST_STRIPS:
        raise Undecodable(f"a TIFF of more than {MOST_STRIPS:,} strips or tiles")
    for tag in WITHIN:
        if 0 < (offset := tag_value(tag, 0)) < len(content) - 8:
            inside = directory(content, offset, order)
            size, values = size + inside.size, values + inside.values
    samples = min(8, max(1, tag_value(SAMPLES, 1 if tag_value(COLOURS, 0) in ONE_SAMPLE else 3)))
    a_sample = -(-min(64, max(1, tag_value(BITS, 1))) // 8)
    stored, a_pixel = (a_sample if samples == 1 and a_sample < 3 else 4), samples * a_sample
    extra = 3 * size + BYTES_A_VALUE * values * 3 + A_STRIP * strips
    if packing != PLAIN:
        # libtiff unpacks a strip or a tile at once, which may be all of the picture (measured: 3 bytes a pixel more, 4 of
        # floats), or much larger than it; colours by YCbCr take 4. A JPEG within keeps its coefficients perhaps.
        rows = min(height, tag_value(ROWS, height) or height)
        at_once = max(width * rows, tag_value(TILE_WIDTH, 0) * tag_value(TILE_HEIGHT, 0))
        extra += at_once * max(4, a_pixel) + (2 * samples * at_once if packing == JPEG else 0) + len(content)
    if tag_value(ORIENTATION, 1) != 1:
        extra += stored * width * height  # Pillow turns it as it loads it
    return Header("TIFF", width, height, stored, extra, width * height)
