"""PNG, and the first picture of an animated one."""

from __future__ import annotations

from .header import Header, Undecodable, numbers

STORED = {(16, 0): 2, (8, 2): 4, (16, 2): 4, (8, 4): 4, (16, 4): 4, (8, 6): 4, (16, 6): 4}  # by bits and colour; else 1
MOST_CHUNKS = 2**18  # of 8 KiB, as they usually are, that were 2 GiB; Pillow takes some microseconds for each
PIXELS = (b"IDAT", b"fdAT", b"DDAT")
# Texts may be packed: Pillow unpacks a megabyte each and 64 in all, 4 bytes a character.
PACKED_TEXT, MOST_PACKED_TEXTS, A_TEXT = (b"zTXt", b"iTXt"), 66, 2**22 + 2**18
A_CHUNK = 200  # bytes, measured 130


def look(content: bytes, draft: object) -> Header:
    if content[12:16] != b"IHDR":
        raise Undecodable("a PNG that does not begin with its header")
    width, height, bits, colour = numbers(">IIBB", content, 16)
    offset, chunks, beside, texts = 8, 0, 0, 0
    while chunks < MOST_CHUNKS:
        kind = content[offset + 4 : offset + 8]
        if len(kind) < 4 or kind == b"IEND":
            break
        if kind == b"IHDR" and offset > 8:
            raise Undecodable("a PNG of two headers")
        length = int.from_bytes(content[offset : offset + 4], "big")
        chunks += 1
        texts += kind in PACKED_TEXT
        beside += 0 if kind in PIXELS else length
        offset += 12 + length
    else:
        raise Undecodable(f"it consists of more than {MOST_CHUNKS:,} chunks")
    extra = 5 * min(beside, len(content)) + A_TEXT * min(texts, MOST_PACKED_TEXTS) + A_CHUNK * chunks
    return Header("PNG", width, height, STORED.get((bits, colour), 1), extra, width * height)
