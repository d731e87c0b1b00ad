"""JPEG, and MPO, which is several of them: the first counts."""

from __future__ import annotations

from .directories import check_exif
from .header import Header, Undecodable, numbers

FRAMES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0), 0xDE))
PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
ALONE = frozenset((0xC8, *range(0xD0, 0xDA), *range(0xF0, 0xFE)))  # without a length
SCAN, APP1 = 0xDA, 0xE1
MOST_BEFORE, MOST_SEGMENTS, MOST_JUNK = 2**25, 10_000, 2**16  # bytes, or segments, before the picture
MOST_SCANS, MOST_SCANNED = 1000, 4 * 10**9  # each goes over all pixels, whatever is in it: 40 over 80 megapixels take 4 s


def look(content: bytes, draft: tuple[int, int] | None) -> Header:
    frames: list[tuple[int, int]] = []  # marker, and where its content is
    exif: list[bytes] = []
    offset, junk = 2, 0
    for _ in range(MOST_SEGMENTS):
        start = content.find(b"\xff", offset)
        junk += start - offset
        offset = start + 1
        while offset < len(content) and content[offset] == 0xFF:
            offset, junk = offset + 1, junk + 1
        if start < 0 or offset >= len(content):
            raise Undecodable("a JPEG without a picture")
        if junk > MOST_JUNK or offset > MOST_BEFORE:
            raise Undecodable(f"more than {MOST_BEFORE:,} bytes stand before its picture")
        marker, offset = content[offset], offset + 1
        if marker in ALONE or not marker:
            continue
        (length,) = numbers(">H", content, offset)
        if marker == SCAN:
            break
        if marker in FRAMES:
            frames.append((marker, offset + 2))
        if marker == APP1 and content.startswith(b"Exif\0\0", offset + 2):
            exif.append(content[offset + 8 : offset + length])
        offset += max(2, length)
    else:
        raise Undecodable(f"more than {MOST_SEGMENTS:,} segments stand before its picture")
    if len(frames) != 1:
        raise Undecodable(f"a JPEG of {len(frames)} frames before its first scan")
    check_exif(b"".join(exif))
    return _header(content, *frames[0], offset, draft)


def _header(content: bytes, marker: int, frame: int, scan: int, draft: tuple[int, int] | None) -> Header:
    height, width, layers = numbers(">HHB", content, frame + 1)
    (scanned,) = numbers("B", content, scan + 2)
    factors = [numbers("B", content, frame + 7 + 3 * layer)[0] for layer in range(layers)]
    scans = content.count(b"\xff\xda", scan) + 1
    if scans > MOST_SCANS or scans * width * height > MOST_SCANNED:
        raise Undecodable(f"{scans} scans over {width}x{height} pixels: a decompression bomb?")
    stored, extra = 1 if layers == 1 else 4, 5 * scan + 2**20
    if marker in PROGRESSIVE or scanned < layers:
        # All coefficients are kept, 2 bytes each, at full size whatever is decoded of them (measured: 3.05 bytes a pixel
        # with colours at half the resolution, 6.1 without, 8.1 of CMYK); and blocks are rounded up.
        most = max(1, max(factor >> 4 for factor in factors)) * max(1, max(factor & 15 for factor in factors))
        share = sum((factor >> 4) * (factor & 15) for factor in factors) / most
        extra += int(2.2 * share * (width + 32) * (height + 32))
    scale = 1
    if draft is not None:
        fits = min(width // draft[0], height // draft[1])
        scale = next((divisor for divisor in (8, 4, 2) if fits >= divisor), 1)
    return Header("JPEG", width, height, stored, extra, -(-width // scale) * -(-height // scale))
