"""Image files of every kind, good ones and hostile ones, made by code."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable

from PIL import Image

from .goods import picture
from .mutations import changed_bytes

SAVED = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), "JPEG": ("L", "RGB", "CMYK"), "GIF": ("L", "P"),
    "BMP": ("1", "L", "RGB"),
    "TIFF": ("1", "L", "RGB", "RGBA", "CMYK", "I;16", "F", "I", "LAB", "YCbCr"), "WEBP": ("RGB", "RGBA"),
    "PPM": ("1", "L", "RGB"),
    "JPEG2000": ("L", "RGB", "RGBA"), "ICO": ("RGBA",), "EPS": ("L", "RGB", "CMYK"), "TGA": ("L", "RGB", "RGBA"),
    "PCX": ("L", "RGB"),
    "DDS": ("RGB", "RGBA"), "SGI": ("L", "RGB"), "IM": ("L", "RGB"), "MSP": ("1",), "XBM": ("1",), "SPIDER": ("F",),
    "PDF": ("RGB",),
    "ICNS": ("RGBA",), "QOI": ("RGB", "RGBA"), "BLP": ("P",), "AVIF": ("RGB", "RGBA"), "MPO": ("RGB",), "DIB": ("RGB",),
}  # fmt: skip
# Of formats that Pillow reads and cannot write.
MAGICS = (
    b"8BPS\x00\x01" + b"\0" * 6 + struct.pack(">HIIHH", 3, 16, 16, 8, 3), b"SIMPLE  =                    T",
    b"\x00\x00\x01\xb3\x01\x00\x10",
    b"\x59\xa6\x6a\x95" + struct.pack(">7I", 16, 16, 24, 768, 1, 0, 0), b"/* XPM */\nstatic char *x[] = {\n",
    b"P7 332\n#\n#\n16 16 255\n",
    struct.pack("<IHHHHHH", 1000, 0xAF12, 2, 16, 16, 8, 3), b"FTEX" + b"\0" * 20, b"\xd7\xcd\xc6\x9a" + b"\0" * 40,
    b"\x00\x00\x02\x00\x01\x00",
    b"BUFR\0\0", b"GRIB\0\0\0\1", b"\x89HDF\r\n\x1a\n", b"\x00\x00\x00\x00\x00\x00\x00\x04" + b"\0" * 300,
    b"\x3a\xde\x68\xb1" + b"\0" * 30,
    struct.pack(">III", 28, 1, 16) + struct.pack(">III", 16, 3, 1347243092),
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) print\n",
    b"\xc5\xd0\xd3\xc6" + b"\x20\0\0\0" + b"\x40\0\0\0" + b"\0" * 30, b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    b"%PDF-1.7\n",
)  # fmt: skip
SIDES = (0, 1, 3000, 8900, 8944, 9000, 20000, 30000, 65535, 2**31 - 1)


def encoded(chance: random.Random) -> tuple[bytes, str]:
    """A good one, of any format and mode; also animated, and with notes."""
    form = chance.choice(list(SAVED))
    mode = chance.choice(SAVED[form])
    image = _as_mode(picture(chance.randrange(8), chance.randrange(4), chance.choice((1, 7, 16, 33))), mode)
    file, options = io.BytesIO(), {}
    if form in ("GIF", "TIFF", "PNG", "WEBP") and chance.random() < 0.3 and mode != "I;16":
        options = {"save_all": True, "append_images": [image.rotate(90)] * chance.choice((1, 20))}
    if form == "TIFF" and mode in ("L", "RGB") and chance.random() < 0.5:
        options["compression"] = chance.choice(("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"))
    if form == "JPEG" and chance.random() < 0.5:
        exif = Image.Exif()
        exif[0x0112] = chance.choice((0, 3, 6, 9, 65535))
        options["exif"] = exif.tobytes()
    if form == "PNG" and chance.random() < 0.2:
        options["icc_profile"] = chance.randbytes(100)
    try:
        image.save(file, form, **options)
    except (OSError, ValueError, KeyError, struct.error):  # not on this machine, or not at this size
        file = io.BytesIO()
        image.convert("RGB").save(file, "PNG")
        form = "PNG"
    return file.getvalue(), f"{form} {mode}"


def _as_mode(image: Image.Image, mode: str) -> Image.Image:
    if mode == "I;16":
        return image.convert("L").point(lambda value: value * 200, "I").convert("I;16")
    if mode == "LAB":
        return Image.merge("LAB", image.split())
    return image.convert(mode)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, depth: int, colour: int, rows: int, extra: bytes = b"", interlace: int = 0) -> bytes:
    """Of so many rows of zeros, whatever its header says."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    packer, zeros = zlib.compressobj(1), bytes(1 + (width * channels * depth + 7) // 8)
    data = b"".join(packer.compress(zeros) for _ in range(rows)) + packer.flush()
    palette = _chunk(b"PLTE", b"\1\2\3" * 2) if colour == 3 else b""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + palette + extra + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def large(chance: random.Random) -> tuple[bytes, str]:
    """Sizes that only the header knows, and sizes that are really there."""
    width, height = chance.choice(SIDES), chance.choice(SIDES)
    form = chance.choice(
        ("png", "png", "real png", "bmp", "gif", "jpeg", "ppm", "tga", "webp", "tiff", "tiff", "text", "frames")
    )
    description = f"{form} of {width}x{height}"
    if form == "png":
        colour, depth = chance.choice(((0, 1), (0, 8), (0, 16), (2, 8), (2, 16), (3, 8), (4, 16), (6, 16)))
        return png(width, height, depth, colour, chance.choice((0, 2)) if width < 10**5 else 0), description
    if form == "real png":  # just under the most pixels there may be
        colour, depth = chance.choice(((0, 8), (0, 16), (2, 8), (4, 16), (6, 8), (6, 16), (3, 1)))
        transparent = (
            _chunk(b"tRNS", b"\0" * {0: 2, 2: 6, 3: 1}.get(colour, 0)) if colour < 4 and chance.random() < 0.5 else b""
        )
        side = chance.choice((3000, 6000, 8900))
        return png(
            side, side, depth, colour, side, transparent, chance.choice((0, 0, 1))
        ), f"real png {side} {colour}/{depth}"
    if form == "bmp":
        bits = chance.choice((1, 4, 8, 24, 32))
        header = struct.pack(
            "<IiiHHIIiiII",
            40,
            min(width, 2**31 - 1),
            chance.choice((1, -1)) * height,
            1,
            bits,
            chance.choice((0, 1, 2)),
            0,
            0,
            0,
            0,
            0,
        )
        return b"BM" + struct.pack("<IHHI", 100, 0, 0, 54) + header + bytes(64), description
    if form == "gif":
        screen = struct.pack("<HHBBB", width % 65536, height % 65536, 0x80, 0, 0) + bytes(6)
        return b"GIF89a" + screen + b"," + struct.pack(
            "<HHHHB", 0, 0, width % 65536, height % 65536, 0
        ) + b"\x02\x02\x4c\x01\x00;", description
    if form == "jpeg":
        file = io.BytesIO()
        picture(1, 1).save(file, "JPEG", progressive=chance.random() < 0.5)
        content = bytearray(file.getvalue())
        offset = max(content.find(b"\xff\xc0"), content.find(b"\xff\xc2"))
        content[offset + 5 : offset + 9] = struct.pack(">HH", height % 65536, width % 65536)
        return bytes(content), description
    if form == "ppm":
        kind = chance.choice((b"P4", b"P5", b"P6", b"P1", b"P3", b"Pf"))
        most = chance.choice((b"", b" 255", b" 65535", b" 0", b" 99999999999"))
        return b"%s %d %d%s\n" % (kind, width, height, most) + bytes(64), description
    if form == "tga":
        return struct.pack(
            "<BBBHHBHHHHBB", 0, 0, chance.choice((2, 3, 10)), 0, 0, 0, 0, 0, width % 65536, height % 65536, 24, 0
        ), description
    if form == "webp":
        bits = (width % 16384) | (height % 16384) << 14 | chance.choice((0, 1)) << 28
        body = b"VP8L" + struct.pack("<IBI", 9, 0x2F, bits) + bytes(5)
        return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body, description
    if form == "tiff":
        return tiff(chance, width, height), description
    if form == "text":  # a note that unpacks to a hundred megabytes
        note = b"Comment\0" + b"\0" + zlib.compress(bytes(chance.choice((10**5, 10**8))), 9)
        return png(16, 16, 8, 0, 16, _chunk(chance.choice((b"zTXt", b"iCCP")), note)), "png with a large note"
    file = io.BytesIO()
    picture(0, 0, 64).save(file, "GIF", save_all=True, append_images=[picture(1, n, 64) for n in range(200)])
    return file.getvalue(), "gif of 200 frames"


def tiff(chance: random.Random, width: int, height: int) -> bytes:
    """One strip of zeros; floats, many bits, directories that lead back to themselves."""
    bits, samples = chance.choice(((1, 1), (8, 1), (16, 1), (32, 1), (64, 1), (8, 3), (16, 4), (32, 3)))
    kind = chance.choice((1, 1, 2, 3))  # whole numbers, signed ones, floats
    real = chance.random() < 0.4
    side = chance.choice((2000, 8900)) if real else 0
    width, height = (side, side) if real else (width, height)
    data = zlib.compress(bytes(side * side * bits * samples // 8), 1) if real and bits * samples <= 32 else bytes(64)
    tags = [
        (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bits),
        (259, 3, 1, 8 if real else chance.choice((1, 5, 7, 32773, 34712))),
        (262, 3, 1, chance.choice((0, 1, 2, 5, 6))), (273, 4, 1, 8), (277, 3, 1, samples), (278, 4, 1, height),
        (279, 4, 1, len(data)), (339, 3, 1, kind),
    ]  # fmt: skip
    if chance.random() < 0.3:
        tags.append((34377, 1, chance.choice((4, 2**31, 2**32 - 1)), 8))
    offset = 8 + len(data)
    entries = b"".join(struct.pack("<HHII", tag, form, count, value % 2**32) for tag, form, count, value in sorted(tags))
    following = chance.choice((0, 0, offset, 8, 2**32 - 1))
    return (
        b"II*\0" + struct.pack("<I", offset) + data + struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)
    )


def unreadable(chance: random.Random) -> tuple[bytes, str]:
    """Beginnings of formats that nobody asked for."""
    return chance.choice(MAGICS) + chance.choice(
        (b"", bytes(500), chance.randbytes(500))
    ), "the beginning of another format"


def polyglot(chance: random.Random) -> tuple[bytes, str]:
    one, other = (
        encoded(chance)[0],
        chance.choice((encoded(chance)[0], b"PK\x05\x06" + bytes(18), b"#!/bin/sh\n", b"GIF89a")),
    )
    return chance.choice((one + other, other + one, one[:20] + other, one[: len(one) // 2] + other)), "two files in one"


def hostile(chance: random.Random) -> tuple[bytes, str]:
    """Any image file, good or not."""
    ways: tuple[Callable[[random.Random], tuple[bytes, str]], ...] = (encoded, large, large, unreadable, polyglot, _damaged)
    weights = (4, 3, 2, 1, 1, 9)
    return chance.choices(ways, weights)[0](chance)


def _damaged(chance: random.Random) -> tuple[bytes, str]:
    content, description = encoded(chance)
    content, how = changed_bytes(content, chance)
    return content, f"{description}, {how}"
