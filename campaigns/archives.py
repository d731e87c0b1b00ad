"""Zip and tar files, good ones and hostile ones, made by code."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import warnings
import zipfile
import zlib

from .goods import picture
from .mutations import INTERESTING, changed_bytes, packed

NAMES = (
    "../../canary/x.png", "c1/../../../canary/x.png", "{canary}/x.png", "c1\\x.png", "..\\..\\x.png", "C:\\x.png", "c1/\x1b[31m.png", "c1/\nx.png",
    "c1/é🐈.png", "c1/" + "n" * 250 + ".png", "/".join("abcdefgh" * 30) + "/x.png", "c1/x\x00y.png", "", "c1/", "./c1/9.png", "c1//9.png", "c1/.png", " /x.png",
    "__MACOSX/c1/x.png", "train/c1/x.png", "c1/0.png", "C1/0.png", "manifest.json", "c1/cat.png.exe", "\u202e/x.png", "con/x.png", "-/x.png", "c1",
)  # fmt: skip
BOMB = 2**31  # bytes that a small entry unpacks to


def entries(chance: random.Random) -> dict[str, bytes]:
    """A good data set: six classes with two images each."""
    found = {}
    for label in range(6):
        for number in range(2):
            file = io.BytesIO()
            picture(label, number, 8).save(file, "PNG")
            found[f"c{label}/{number}.png"] = file.getvalue()
    return found


def hostile_name(chance: random.Random, canary: str) -> str:
    return chance.choice(NAMES).replace("{canary}", canary)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, method)
    return file.getvalue()


def hostile_zip(chance: random.Random, canary: str) -> tuple[bytes, str]:
    files = entries(chance)
    way = chance.choice(("names", "names", "sizes", "sizes", "bomb", "overlap", "flags", "many", "nested", "comment", "damage", "damage", "zip64"))
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    if way == "names":
        name = hostile_name(chance, canary)
        with _quiet():
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
        for place in _headers(bytes(content), b"PK\x01\x02"):
            content[place + 8 : place + 10] = packed("<H", chance.choice((1, 0x41, 8, 0x800, 0xFFFF)))
            content[place + 10 : place + 12] = packed("<H", chance.choice((0, 1, 6, 8, 9, 12, 14, 93, 97, 99)))
        return bytes(content), "zip with other flags and methods"
    if way == "comment":
        place = content.rfind(b"PK\x05\x06")
        content[place + 20 :] = packed("<H", 65535) + chance.choice((b"", b"PK\x05\x06" * 9000, bytes(65535)))
        return bytes(content), "zip with a long comment"
    if way == "zip64":
        place = content.rfind(b"PK\x05\x06")
        record = b"PK\x06\x06" + packed("<QHHIIQQQQ", 44, 45, 45, 0, 0, *(chance.choice((12, *INTERESTING)) for _ in range(4)))
        content[place:place] = record + b"PK\x06\x07" + packed("<IQI", 0, chance.choice((place, *INTERESTING)), 1)
        if chance.random() < 0.7:
            end = content.rfind(b"PK\x05\x06")
            content[end + 8 : end + 20] = b"\xff" * 12
        return bytes(content), "zip64 with odd numbers"
    damaged, how = changed_bytes(bytes(content), chance)
    return damaged, f"zip ({method}), {how}"


def lying_zip(chance: random.Random, content: bytes) -> bytes:
    """Packed or unpacked sizes, checksums and places of some entries, in one header or in both."""
    found = bytearray(content)
    both = chance.random() < 0.5
    for magic, places in ((b"PK\x01\x02", (16, 20, 24, 42)), (b"PK\x03\x04", (14, 18, 22, 26))):
        for header in _headers(content, magic):
            if chance.random() < 0.3 and (both or magic == b"PK\x01\x02"):
                at = header + chance.choice(places)
                found[at : at + 4] = packed("<I", chance.choice((*INTERESTING, 100, 2**28, 2**29 - 1)))
    return bytes(found)


def bomb_zip(chance: random.Random, files: dict[str, bytes]) -> bytes:
    """An entry of a few kilobytes that unpacks to two gigabytes, and says it is small, or that it is just not too large."""
    told = chance.choice((100, 2**29 - 1, BOMB))
    method, packed_ = bombs(chance)
    name = b"c1/9.png"
    crc = 0
    local = b"PK\x03\x04" + packed("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, len(packed_), told, len(name), 0) + name + packed_
    good = bytearray(zipped(files))
    end = good.rfind(b"PK\x05\x06")
    directory = struct.unpack("<I", good[end + 16 : end + 20])[0]
    entry = b"PK\x01\x02" + packed("<HHHHHHIIIHHHHHII", 20, 20, 0, method, 0, 33, crc, len(packed_), told, len(name), 0, 0, 0, 0, 0, directory) + name
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
            _BOMBS[14] = b"\x09\x04\x05\x00\x5d" + packed("<I", 2**30 + 2**29) + lzma.compress(bytes(2**20), lzma.FORMAT_ALONE)[13:]
    return method, _BOMBS[method]


def overlapping(chance: random.Random, content: bytes) -> bytes:
    """All entries of the directory begin at the same place."""
    found = bytearray(content)
    for header in _headers(content, b"PK\x01\x02"):
        if chance.random() < 0.8:
            found[header + 42 : header + 46] = bytes(4)
    return bytes(found)


def _headers(content: bytes, magic: bytes) -> list[int]:
    found, place = [], content.find(magic)
    while place >= 0:
        found.append(place)
        place = content.find(magic, place + 4)
    return found


def hostile_tar(chance: random.Random, canary: str) -> tuple[bytes, str]:
    files = entries(chance)
    way = chance.choice(("names", "names", "links", "links", "size", "size", "sparse", "pax", "bomb", "damage", "damage", "many", "twice", "devices"))
    file = io.BytesIO()
    form = chance.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in files.items():
            _put(archive, name, content)
        told = _hostile_members(archive, chance, way, canary, files)
    content = file.getvalue()
    if way == "size":
        content = _other_size(chance, content)
    if way == "damage":
        content, told = changed_bytes(content, chance)
    if way == "bomb":
        content = content[:1024] + bytes(0) + content
    packer = chance.choice(("", "", "gz", "bz2", "xz"))
    if packer:
        content = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packer](content)
    if packer and way == "bomb":
        more = {"gz": lambda: gzip.compress(bytes(2**28), 9), "bz2": lambda: bz2.compress(bytes(2**26)) * 8, "xz": lambda: lzma.compress(bytes(2**26)) * 8}
        content += more[packer]()
    if packer and chance.random() < 0.2:
        content, how = changed_bytes(content, chance)
        told = f"{told}, packed: {how}"
    return content, f"tar {packer} ({way}): {told}"


def _put(archive: tarfile.TarFile, name: str, content: bytes = b"", **settings: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in settings.items():
        setattr(member, key, value)
    try:
        archive.addfile(member, io.BytesIO(content))
    except (ValueError, UnicodeEncodeError):  # what this form of tar cannot say
        return


def _hostile_members(archive: tarfile.TarFile, chance: random.Random, way: str, canary: str, files: dict[str, bytes]) -> str:
    if way == "names":
        name = hostile_name(chance, canary)
        _put(archive, name, files["c1/0.png"])
        return repr(name)
    if way == "links":
        kind = chance.choice((tarfile.SYMTYPE, tarfile.LNKTYPE))
        target = chance.choice((f"{canary}/secret.txt", "../../canary/picture.png", "c1/0.png", "c1/l.png", "/dev/zero", "c1"))
        _put(archive, "c1/l.png", type=kind, linkname=target)
        _put(archive, "c1/l.png/x.png", files["c1/0.png"])
        return f"a link to {target}"
    if way == "devices":
        _put(archive, "c1/d.png", type=chance.choice((tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z", b"V")), devmajor=1, devminor=5)
        return "a device"
    if way == "sparse":
        sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "c1/s.png", "GNU.sparse.realsize": str(chance.choice(INTERESTING))}
        _put(archive, "c1/s.png", chance.choice((b"1\n0\n512\n", b"99999999\n", b"x\n")).ljust(512, b"\0") + files["c1/0.png"], pax_headers=sparse)
        return "a sparse file"
    if way == "pax":
        name = chance.choice(("path", "size", "linkpath", "hdrcharset", "mtime", "GNU.sparse.map"))
        value = chance.choice(("", "x", "-1", str(2**60), "1e999", "9" * 5000, "../../canary/x", "\x00", "1,2,3"))
        _put(archive, "c1/p.png", files["c1/0.png"], pax_headers={name: value})
        return f"{name}={value[:20]!r}"
    if way == "many":
        for number in range(5000):
            _put(archive, f"c1/n{number}.png")
        return "5000 entries"
    if way == "twice":
        _put(archive, "c1/0.png", files["c1/1.png"])
        return "an entry twice"
    return ""


def _other_size(chance: random.Random, content: bytes) -> bytes:
    """One header claims another size, with a right checksum."""
    found = bytearray(content)
    headers = [place for place in range(0, len(found) - 1024, 512) if found[place + 257 : place + 262] == b"ustar"]
    at = chance.choice(headers)
    value = chance.choice((2**60, 2**63 - 1, 2**40, 2**33, 2**29 + 1, 2**29, 10**6, 511))
    if chance.random() < 0.15:
        found[at + 124 : at + 136] = b"\xff" + b"\xff" * 11  # less than nothing
    elif value < 8**11:
        found[at + 124 : at + 136] = b"%011o\0" % value
    else:
        found[at + 124 : at + 136] = b"\x80" + value.to_bytes(11, "big")
    found[at + 148 : at + 156] = b" " * 8
    found[at + 148 : at + 156] = b"%06o\0 " % sum(found[at : at + 512])
    return bytes(found)


def _quiet() -> warnings.catch_warnings:  # type: ignore[type-arg]
    return warnings.catch_warnings(action="ignore")
