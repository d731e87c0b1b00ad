"""Hostile zip files: sizes that lie, bombs, entries that overlap, names that lead outside."""

from __future__ import annotations

import bz2
import io
import lzma
import random
import struct
import warnings
import zipfile
import zlib

from .archives import entries, hostile_name
from .mutations import INTERESTING, changed_bytes, packed

BOMB = 2**31  # bytes that a small entry says it unpacks to


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, method)
    return file.getvalue()


def hostile_zip(chance: random.Random, canary: str) -> tuple[bytes, str]:
    files = entries(chance)
    way = chance.choice("names names sizes sizes bomb overlap flags many nested comment damage damage zip64".split())
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    if way == "names":
        name = hostile_name(chance, canary)
        with warnings.catch_warnings(action="ignore"):
            return zipped({**files, name: files["c1/0.png"]}), f"zip with {name!r}"
    if way == "sizes":
        return lying_zip(chance, zipped(files, method)), f"zip ({method}) that lies about a size"
    if way == "bomb":
        return bomb_zip(chance, files), "zip with a bomb"
    if way == "overlap":
        return overlapping(chance, zipped(files)), "zip with entries that overlap"
    if way == "many":
        count = chance.choice((5000, 20000))
        return zipped({**files, **{f"c1/n{number}.png": b"" for number in range(count)}}), f"zip of {count} entries"
    if way == "nested":
        return zipped({**files, "c1/inner.zip": zipped(files), "c1/x.png": zipped(files)}), "zip in a zip"
    content = bytearray(zipped(files, method))
    if way == "flags":
        for offset in _headers(bytes(content), b"PK\x01\x02"):
            content[offset + 8 : offset + 10] = packed("<H", chance.choice((1, 0x41, 8, 0x800, 0xFFFF)))
            content[offset + 10 : offset + 12] = packed("<H", chance.choice((0, 1, 6, 8, 9, 12, 14, 93, 97, 99)))
        return bytes(content), "zip with other flags and methods"
    if way == "comment":
        offset = content.rfind(b"PK\x05\x06")
        content[offset + 20 :] = packed("<H", 65535) + chance.choice((b"", b"PK\x05\x06" * 9000, bytes(65535)))
        return bytes(content), "zip with a long comment"
    if way == "zip64":
        offset = content.rfind(b"PK\x05\x06")
        record = b"PK\x06\x06" + packed(
            "<QHHIIQQQQ", 44, 45, 45, 0, 0, *(chance.choice((12, *INTERESTING)) for _ in range(4))
        )
        content[offset:offset] = record + b"PK\x06\x07" + packed("<IQI", 0, chance.choice((offset, *INTERESTING)), 1)
        if chance.random() < 0.7:
            end = content.rfind(b"PK\x05\x06")
            content[end + 8 : end + 20] = b"\xff" * 12
        return bytes(content), "zip64 with odd numbers"
    damaged, how = changed_bytes(bytes(content), chance)
    return damaged, f"zip ({method}), {how}"


def lying_zip(chance: random.Random, content: bytes) -> bytes:
    """Packed or unpacked sizes, checksums and places of some entries, in one header or in both."""
    changed = bytearray(content)
    both = chance.random() < 0.5
    for magic, fields in ((b"PK\x01\x02", (16, 20, 24, 42)), (b"PK\x03\x04", (14, 18, 22, 26))):
        for header in _headers(content, magic):
            if chance.random() < 0.3 and (both or magic == b"PK\x01\x02"):
                at = header + chance.choice(fields)
                changed[at : at + 4] = packed("<I", chance.choice((*INTERESTING, 100, 2**28, 2**29 - 1)))
    return bytes(changed)


def bomb_zip(chance: random.Random, files: dict[str, bytes]) -> bytes:
    """An entry of a few kilobytes that unpacks to two gigabytes, and says it is small, or that it is just not too large."""
    claimed = chance.choice((100, 2**29 - 1, BOMB))
    method, packed_ = bombs(chance)
    name = b"c1/9.png"
    crc = 0
    local = (
        b"PK\x03\x04"
        + packed("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, len(packed_), claimed, len(name), 0)
        + name
        + packed_
    )
    good = bytearray(zipped(files))
    end = good.rfind(b"PK\x05\x06")
    directory = struct.unpack("<I", good[end + 16 : end + 20])[0]
    entry = (
        b"PK\x01\x02"
        + packed(
            "<HHHHHHIIIHHHHHII", 20, 20, 0, method, 0, 33, crc, len(packed_), claimed, len(name), 0, 0, 0, 0, 0, directory
        )
        + name
    )
    central = bytes(good[directory:end]) + entry
    total = len(files) + 1
    tail = b"PK\x05\x06" + packed("<HHHHIIH", 0, 0, total, total, len(central), directory + len(local), 0)
    return bytes(good[:directory]) + local + central + tail


_BOMBS: dict[int, bytes] = {}


def bombs(chance: random.Random) -> tuple[int, bytes]:
    """A way of packing, and zeros packed that way: as deep as that way goes in a moment."""
    method = chance.choice((8, 12, 14))
    if method not in _BOMBS:
        if method == 8:
            block = bytes(2**20)
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            _BOMBS[8] = b"".join(packer.compress(block) for _ in range(512)) + packer.flush()
        elif method == 12:
            _BOMBS[12] = bz2.compress(bytes(2**26)) * 16
        else:  # a dictionary of a gigabyte, which nothing is in
            _BOMBS[14] = (
                b"\x09\x04\x05\x00\x5d" + packed("<I", 2**30 + 2**29) + lzma.compress(bytes(2**20), lzma.FORMAT_ALONE)[13:]
            )
    return method, _BOMBS[method]


def overlapping(chance: random.Random, content: bytes) -> bytes:
    """All entries of the directory begin at the same place."""
    changed = bytearray(content)
    for header in _headers(content, b"PK\x01\x02"):
        if chance.random() < 0.8:
            changed[header + 42 : header + 46] = bytes(4)
    return bytes(changed)


def _headers(content: bytes, magic: bytes) -> list[int]:
    offsets, offset = [], content.find(magic)
    while offset >= 0:
        offsets.append(offset)
        offset = content.find(magic, offset + 4)
    return offsets
