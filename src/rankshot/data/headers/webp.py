"""WebP: the first picture of it."""

from __future__ import annotations

from .header import Header, Undecodable, numbers

# Measured: 16.3 bytes a pixel, of which Pillow stores 4. libwebp has two canvases, Pillow copies the one.
CANVASES = 12
# Lossless: tables of Huffman codes, for blocks of 4x4 pixels if a file asks for it. The smallest take 20 bits of it and
# 5.8 KB of memory (measured on one that was made for it: 295 KB, a megapixel, 382 MB), the largest 20 KB, at 64 bytes for
# each of the file. How many there are can only be known by decoding, so all is taken for as bad as it may be.
MOST_TABLES, BITS_A_TABLE, A_TABLE, FULL_TABLE, FULL_TABLES = 2**16, 20, 6000, 21_000, 64
MOST_CHUNKS = 2**16


def look(content: bytes, draft: object) -> Header:
    kind = content[12:16]
    if kind == b"VP8X":
        wide, high = content[24:27], content[27:30]
        width, height = int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
    elif kind == b"VP8L":
        (bits,) = numbers("<I", content, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in numbers("<HH", content, 26))
    else:
        raise Undecodable("no image, or of an unknown kind")
    pixels, lossless = width * height, _lossless(content)
    tables = min(MOST_TABLES, -(-width // 4) * -(-height // 4), 8 * lossless // BITS_A_TABLE)
    tables = min(tables * FULL_TABLE, tables * A_TABLE + FULL_TABLES * lossless)
    # They are gone before Pillow makes its copies, but the decoder has pixels of its own.
    extra = max(CANVASES * pixels, 8 * pixels + tables)
    return Header("WEBP", width, height, 4, extra + 2 * len(content), pixels)


def _lossless(content: bytes) -> int:
    """How many bytes are packed that way, colours or transparency alone."""
    packed, offset = 0, 12
    for _ in range(MOST_CHUNKS):
        kind = content[offset : offset + 4]
        if len(kind) < 4:
            return packed
        length = int.from_bytes(content[offset + 4 : offset + 8], "little")
        if kind in (b"VP8L", b"ALPH"):
            packed += min(length, len(content) - offset)
        offset += 24 if kind == b"ANMF" else 8 + length + length % 2  # what is within a frame comes next
    raise Undecodable(f"it consists of more than {MOST_CHUNKS:,} chunks")
