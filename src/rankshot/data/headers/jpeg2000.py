"""JPEG 2000: what its stream of code tells; what the boxes around it say is not believed."""

from __future__ import annotations

from typing import NamedTuple

from .header import Header, Undecodable, numbers

STREAM = b"\xff\x4f\xff\x51"
CODING, CODING_OF_ONE, TILE, DATA, END = 0x52, 0x53, 0x90, 0x93, 0xD9
USUAL = frozenset((0x50, CODING, CODING_OF_ONE, 0x55, 0x57, 0x5C, 0x5D, 0x5E, 0x63, 0x64))  # markers before the first tile
IN_TILES = frozenset((0x58, 0x5C, 0x5D, 0x5E, 0x64))
# Measured: 4 s for 24 megapixels, and a fifth of a second a megabyte of the file.
MOST_PIXELS, MOST_BYTES, MOST_PACKETS = 24_000_000, 2**24, 2**22
# Measured with OpenJPEG 2.5: 4 bytes a sample of a tile, and 1 or 2 more for Pillow to copy; beside that 12 KB a tile of
# the picture in three layers, and within a tile 420 bytes a block of code and 5 KB a precinct.
A_TILE, A_BLOCK, A_PRECINCT = 5000, 450, 6000


class Coding(NamedTuple):
    """How samples are coded: logarithms of sizes, of the precincts for every level."""

    block: tuple[int, int]
    precincts: list[tuple[int, int]]
    qualities: int


def look(content: bytes, draft: object) -> Header:
    offset = _stream(content)
    right, bottom, left, top, wide, high, from_left, from_top, layers = numbers(">IIIIIIIIH", content, offset + 8)
    width, height = right - left, bottom - top
    if width <= 0 or height <= 0 or not wide or not high or from_left > left or from_top > top or not 1 <= layers <= 4:
        raise Undecodable(f"a JPEG 2000 of {width}x{height} pixels in {layers} layers")
    if width * height > MOST_PIXELS or len(content) > MOST_BYTES:
        raise Undecodable(f"{width}x{height} pixels of JPEG 2000 in {len(content):,} bytes would take too long to decode")
    is_deep = any(numbers("B", content, offset + 42 + 3 * layer)[0] & 0x7F > 7 for layer in range(layers))
    tiles = -(-(right - from_left) // wide) * -(-(bottom - from_top) // high)
    wide, high = min(wide, width), min(high, height)
    extra = tiles * (layers + 1) * A_TILE + wide * high * layers * (6 if is_deep else 5) + len(content)
    for coding in _codings(content, offset + 4):
        extra += layers * _structure(coding, wide, high)
    stored = 4 if layers > 1 else 2 if is_deep else 1
    return Header("JPEG2000", width, height, stored, extra, width * height)


def _stream(content: bytes) -> int:
    """Where it begins: at once, or in the first box of its kind."""
    offset = 0
    while not content.startswith(STREAM, offset):
        length, kind = numbers(">I", content, offset)[0], content[offset + 4 : offset + 8]
        head = 8
        if length == 1:
            length, head = numbers(">Q", content, offset + 8)[0], 16
        offset = offset + head if kind == b"jp2c" else offset + length
        if length < head or (kind == b"jp2c" and not content.startswith(STREAM, offset)):
            raise Undecodable("a JPEG 2000 without a picture")
    return offset


def _codings(content: bytes, offset: int) -> list[Coding]:
    """All that it tells. Tiles that are coded in a way of their own are refused: none that people use has them."""
    codings: list[Coding] = []
    start = part = 0
    offset += numbers(">H", content, offset)[0]
    while offset + 4 <= len(content) and content[offset + 1] != END:
        marker, length = content[offset + 1], numbers(">H", content, offset + 2)[0]
        if marker == TILE:
            start, part = offset, numbers(">I", content, offset + 6)[0]
        elif marker == DATA and start:
            if part < 14:  # up to the end of the file
                break
            offset = start + part
            continue
        elif marker not in (IN_TILES if start else USUAL):
            raise Undecodable(f"a JPEG 2000 with an unusual marker, {marker:#x}")
        elif marker == CODING:
            codings.append(
                _coding(
                    content, offset + 9, numbers("B", content, offset + 4)[0] & 1, numbers(">H", content, offset + 6)[0]
                )
            )
        elif marker == CODING_OF_ONE:
            codings.append(_coding(content, offset + 6, numbers("B", content, offset + 5)[0] & 1, 1))
        offset += 2 + max(2, length)
    return codings


def _coding(content: bytes, offset: int, has_precincts: int, qualities: int) -> Coding:
    levels, across, down = numbers("BBB", content, offset)
    if levels > 32:
        raise Undecodable(f"a JPEG 2000 of {levels} levels")
    precincts = [(15, 15)] * (levels + 1)
    if has_precincts:
        precincts = [(byte & 15, byte >> 4) for byte in numbers(f"{levels + 1}B", content, offset + 5)]
    return Coding((min(across, 8) + 2, min(down, 8) + 2), precincts, qualities)


def _structure(coding: Coding, wide: int, high: int) -> int:
    """Bytes for the blocks and precincts of a layer of a tile."""
    blocks = precincts = 0
    for level, (across, down) in enumerate(coding.precincts):
        scale = 2 ** (len(coding.precincts) - 1 - level)
        width, height = -(-wide // scale), -(-high // scale)
        precincts += (width // 2**across + 2) * (height // 2**down + 2)
        within = 1 if level else 0  # precincts are told for a level, which has bands of half the size
        a, b = min(coding.block[0], max(0, across - within)), min(coding.block[1], max(0, down - within))
        blocks += (width // 2**a + 2) * (height // 2**b + 2)
    if precincts * coding.qualities > MOST_PACKETS:
        raise Undecodable(f"a JPEG 2000 in {precincts * coding.qualities:,} packets would take too long to decode")
    return blocks * A_BLOCK + precincts * A_PRECINCT
