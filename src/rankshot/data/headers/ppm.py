"""PBM, PGM, PPM and PFM."""

from __future__ import annotations

import re

from .header import Header, Undecodable

STORED = {b"P1": 1, b"P2": 4, b"P3": 4, b"P4": 1, b"P5": 4, b"P6": 4, b"Pf": 4}
PLAIN = (b"P1", b"P2", b"P3")  # numbers as text
SAMPLES = {b"P3": 3, b"P6": 3}
MOST_IN_PYTHON = 2**21  # samples that Pillow decodes one by one: a few seconds
MOST_COMMENTS = 1000  # each takes Pillow a pass over a megabyte
TOKEN = re.compile(rb"(?:[ \t\n\v\f\r]|#[^\r\n]*[\r\n])*([^ \t\n\v\f\r#]{1,10})")
HEADER = 2**12  # bytes that hold the numbers, with the comments between


def look(content: bytes, draft: object) -> Header:
    kind, offset = content[:2], 2
    if kind not in STORED:
        raise Undecodable("no image, or of an unknown kind")
    tokens: list[bytes] = []
    start = content[:HEADER]
    while len(tokens) < (2 if kind in (b"P1", b"P4") else 3):
        token = TOKEN.match(start, offset)
        if token is None:
            raise Undecodable(f"its header does not tell width and height within {HEADER} bytes")
        tokens.append(token[1])
        offset = token.end()
    try:
        width, height = int(tokens[0]), int(tokens[1])
        highest = int(tokens[2]) if len(tokens) > 2 and kind != b"Pf" else 1
    except ValueError:
        raise Undecodable("its header holds no numbers") from None
    pixels, samples = width * height, width * height * SAMPLES.get(kind, 1)
    is_slow = kind in PLAIN or (kind == b"P5" and highest not in (255, 65535)) or (kind == b"P6" and highest != 255)
    if is_slow and samples > MOST_IN_PYTHON:
        message = f"{width}x{height} pixels are too many for a PPM that is text or not of 8 bits"
        raise Undecodable(f"{message}: {MOST_IN_PYTHON} samples are read")
    if kind in PLAIN and content.count(b"#") > MOST_COMMENTS:
        raise Undecodable(f"it holds more than {MOST_COMMENTS} comments")
    # In Python it grows as a bytearray of up to 4 bytes a sample, and is copied twice; blocks of a megabyte are split.
    return Header("PPM", width, height, STORED[kind], 16 * samples + 2**26 if is_slow else 0, pixels)
