"""Hostile tar files, packed or not: sizes that lie, links, devices, sparse files, headers of every kind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
from collections.abc import Callable

from .archives import entries, hostile_name
from .mutations import INTERESTING, changed_bytes

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def hostile_tar(chance: random.Random, canary: str) -> tuple[bytes, str]:
    files = entries(chance)
    way = chance.choice("names names links links size size sparse pax bomb damage damage many twice devices".split())
    file = io.BytesIO()
    form = chance.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in files.items():
            _put(archive, name, content)
        description = _hostile_members(archive, chance, way, canary, files)
    content = file.getvalue()
    if way == "size":
        content = _other_size(chance, content)
    if way == "damage":
        content, description = changed_bytes(content, chance)
    packer = chance.choice(("", "", "gz", "bz2", "xz"))
    if packer:
        content = _bomb(packer, content) if way == "bomb" else PACKERS[packer](content)
    if packer and chance.random() < 0.2:
        content, how = changed_bytes(content, chance)
        description = f"{description}, packed: {how}"
    return content, f"tar {packer} ({way}): {description}"


def _bomb(packer: str, content: bytes) -> bytes:
    """A gigabyte of zeros after the other entries, packed part by part: parts that follow one another are one stream."""
    header = tarfile.TarInfo("c1/bomb.png")
    header.size = 2**30
    pack, zeros = PACKERS[packer], PACKERS[packer](bytes(2**26))
    end = content.rstrip(b"\0")
    whole = end + bytes(-len(end) % 512)
    return pack(whole) + pack(header.tobuf(tarfile.GNU_FORMAT)) + zeros * 16 + pack(bytes(1024))


def _put(archive: tarfile.TarFile, name: str, content: bytes = b"", **settings: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in settings.items():
        setattr(member, key, value)
    try:
        archive.addfile(member, io.BytesIO(content))
    except (ValueError, UnicodeEncodeError):  # what this form of tar cannot say
        return


def _hostile_members(
    archive: tarfile.TarFile, chance: random.Random, way: str, canary: str, files: dict[str, bytes]
) -> str:
    if way == "names":
        name = hostile_name(chance, canary)
        _put(archive, name, files["c1/0.png"])
        return repr(name)
    if way == "links":
        kind = chance.choice((tarfile.SYMTYPE, tarfile.LNKTYPE))
        target = chance.choice(
            (f"{canary}/secret.txt", "../../canary/picture.png", "c1/0.png", "c1/l.png", "/dev/zero", "c1")
        )
        _put(archive, "c1/l.png", type=kind, linkname=target)
        _put(archive, "c1/l.png/x.png", files["c1/0.png"])
        return f"a link to {target}"
    if way == "devices":
        _put(
            archive,
            "c1/d.png",
            type=chance.choice((tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z", b"V")),
            devmajor=1,
            devminor=5,
        )
        return "a device"
    if way == "sparse":
        sparse = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": "c1/s.png",
            "GNU.sparse.realsize": str(chance.choice(INTERESTING)),
        }
        _put(
            archive,
            "c1/s.png",
            chance.choice((b"1\n0\n512\n", b"99999999\n", b"x\n")).ljust(512, b"\0") + files["c1/0.png"],
            pax_headers=sparse,
        )
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
    changed = bytearray(content)
    headers = [offset for offset in range(0, len(changed) - 1024, 512) if changed[offset + 257 : offset + 262] == b"ustar"]
    at = chance.choice(headers)
    value = chance.choice((2**60, 2**63 - 1, 2**40, 2**33, 2**29 + 1, 2**29, 10**6, 511))
    if chance.random() < 0.15:
        changed[at + 124 : at + 136] = b"\xff" + b"\xff" * 11  # less than nothing
    elif value < 8**11:
        changed[at + 124 : at + 136] = b"%011o\0" % value
    else:
        changed[at + 124 : at + 136] = b"\x80" + value.to_bytes(11, "big")
    changed[at + 148 : at + 156] = b" " * 8
    changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
    return bytes(changed)
