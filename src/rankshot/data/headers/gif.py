"""GIF: the first picture of it."""

from __future__ import annotations

from .header import Header, Undecodable, numbers

MOST_BEFORE, MOST_BLOCKS, A_BLOCK = 2**22, 2**16, 200  # bytes, and blocks, of comments and the like before the picture
EXTENSION, PICTURE = 0x21, 0x2C


def look(content: bytes, draft: object) -> Header:
    width, height, flags = numbers("<HHB", content, 6)
    blocks, offset = 0, 13 + (3 << (flags & 7) + 1 if flags & 128 else 0)
    while offset < len(content):
        kind = content[offset]
        if kind == PICTURE:
            left, top, wide, high = numbers("<HHHH", content, offset + 1)
            width, height = max(width, left + wide), max(height, top + high)  # as Pillow does
            return Header("GIF", width, height, 1, 2 * offset + A_BLOCK * blocks, width * height)
        offset += 1
        if kind == EXTENSION:
            offset, more = _after_blocks(content, offset + 1)
            blocks += more
        if offset > MOST_BEFORE or blocks > MOST_BLOCKS:
            raise Undecodable(f"more than {MOST_BEFORE:,} bytes or {MOST_BLOCKS:,} blocks stand before its picture")
    raise Undecodable("a GIF without a picture")


def _after_blocks(content: bytes, offset: int) -> tuple[int, int]:
    """Blocks tell their length first; one of no length is the last. Where they end, and how many they are."""
    blocks = 1
    while offset < len(content) and content[offset]:
        offset, blocks = offset + 1 + content[offset], blocks + 1
    return offset + 1, blocks
