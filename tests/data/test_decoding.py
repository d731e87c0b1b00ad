"""Any size and mode becomes upright 8-bit pixels."""

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from pictures import encoded, pixels
from PIL import Image, ImageOps

from rankshot.data.decoding import Undecodable, decode, view
from rankshot.preprocess import Preprocess


def plain(array, size):
    picture = Image.fromarray(array).resize((size[1], size[0]), Image.Resampling.BICUBIC)
    return np.asarray(picture).astype(int)


def difference(decoded, expected):
    return np.abs(decoded.astype(int).transpose(1, 2, 0) - expected).mean()


@pytest.mark.parametrize(
    ("kind", "options"), [("png", {}), ("bmp", {}), ("tiff", {}), ("webp", {"lossless": True}), ("ppm", {})]
)
def test_kinds_of_files(kind, options):
    array = pixels(1)
    decoded = decode(encoded(array, kind, **options), Preprocess(3, 12, 16))
    assert decoded.shape == (3, 12, 16)
    assert decoded.dtype == np.uint8
    assert difference(decoded, plain(array, (12, 16))) < 0.6


def test_jpeg():
    array = pixels(1)
    assert difference(decode(encoded(array, "jpeg", quality=95), Preprocess(3, 24, 32)), array) < 3


def test_large_photographs_are_decoded_small():
    """Draft decoding changes a little, and the header alone decides how large the rest becomes."""
    array = pixels(2, size=(375, 500))
    assert difference(decode(encoded(array, "jpeg", quality=95), Preprocess(3, 84, 84)), plain(array, (84, 84))) < 3


MODES = {
    "L": lambda image: image.convert("L"),
    "1": lambda image: image.convert("1"),
    "P": lambda image: image.convert("P"),
    "RGBA": lambda image: image.convert("RGBA"),
    "LA": lambda image: image.convert("LA"),
    "CMYK": lambda image: image.convert("CMYK"),
    "I;16": lambda image: Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257),
    "I": lambda image: Image.fromarray(np.asarray(image.convert("L")).astype(np.int32) * 257),
    "F": lambda image: Image.fromarray(np.asarray(image.convert("L")).astype(np.float32) / 255),
    "YCbCr": lambda image: image.convert("YCbCr"),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_modes(mode, channels):
    if mode == "YCbCr" and int(Image.__version__.partition(".")[0]) < 13:
        pytest.skip("Pillow before 13 cannot read back the TIFF files of this mode that it writes")
    image = Image.fromarray(pixels(3))
    kind = "jpeg" if mode == "CMYK" else "png" if mode in ("L", "1", "P", "RGBA", "LA", "I;16") else "tiff"
    changed = MODES[mode](image)
    decoded = decode(encoded(changed, kind, **({"quality": 95} if kind == "jpeg" else {})), Preprocess(channels, 24, 32))
    expected = np.asarray(
        changed.convert("RGB") if mode in ("1", "P", "CMYK", "YCbCr", "RGBA") else image.convert("L").convert("RGB")
    )
    expected = expected if channels == 3 else np.asarray(Image.fromarray(expected).convert("L"))[..., None]
    assert difference(decoded, expected) < 3


def test_what_is_transparent_is_white():
    array = np.zeros((8, 8, 4), dtype=np.uint8)
    array[:4, :, 3] = 255  # black above, transparent below
    decoded = decode(encoded(array), Preprocess(3, 8, 8))
    assert (decoded[:, :3] < 60).all()
    assert (decoded[:, 5:] > 200).all()
    palette = Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).convert("P")
    assert (decode(encoded(palette, "png", transparency=0), Preprocess(1, 8, 8)) == 255).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_stand_upright(orientation):
    array = pixels(4)
    turned = {
        1: lambda x: x,
        2: lambda x: x[:, ::-1],
        3: lambda x: x[::-1, ::-1],
        4: lambda x: x[::-1],
        5: lambda x: x.transpose(1, 0, 2),
        6: lambda x: np.rot90(x),
        7: lambda x: x[::-1, ::-1].transpose(1, 0, 2),
        8: lambda x: np.rot90(x, 3),
    }[orientation](array)
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(np.ascontiguousarray(turned), "png", exif=exif)
    assert difference(decode(content, Preprocess(3, 24, 32)), array) == 0


def test_a_view_keeps_its_form():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = encoded(pixels(4, size=(300, 500)), "jpeg", exif=exif)
    assert view(turned, 100).size == (60, 100)
    assert view(encoded(pixels(4, size=(24, 32))), 100).size == (32, 24)  # no larger than it is
    assert view(encoded(pixels(4, size=(1, 900))), 100).size == (100, 1)
    grey = Image.fromarray(pixels(3)).convert("L")
    assert view(encoded(grey), 10).mode == "RGB"
    with pytest.raises(Undecodable, match="no image"):
        view(b"hello", 100)


def test_boxes():
    array = pixels(5)
    decoded = decode(encoded(array), Preprocess(3, 10, 12), box=(4.0, 6.0, 16.0, 16.0))
    assert np.array_equal(decoded.transpose(1, 2, 0), array[6:16, 4:16])
    past = decode(encoded(array), Preprocess(3, 10, 12), box=(20.0, 14.0, 99.0, 99.0))
    assert np.array_equal(past.transpose(1, 2, 0), array[14:24, 20:32])
    with pytest.raises(Undecodable, match="lies outside of the picture, 32x24"):
        decode(encoded(array), Preprocess(3, 10, 12), box=(40.0, 6.0, 50.0, 16.0))


def test_ink():
    array = np.full((8, 8), 255, dtype=np.uint8)
    array[2:4] = 0
    decoded = decode(encoded(Image.fromarray(array).convert("1")), Preprocess(1, 8, 8, invert=True))
    assert (decoded[0, 2:4] > 200).all()
    assert (decoded[0, 6:] == 0).all()


@pytest.mark.parametrize(
    "content", [b"", b"hello", encoded(pixels())[:60], encoded(pixels(), "jpeg")[:200], b"\x89PNG\r\n\x1a\n" + b"0" * 99]
)
def test_what_is_no_image(content):
    with pytest.raises(Undecodable):
        decode(content, Preprocess(3, 8, 8))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")  # an error in all tests, and ignored elsewhere
def test_a_jpeg_of_a_108_megapixel_phone():
    content = io.BytesIO()
    Image.new("L", (12_000, 9_000), 90).save(content, "JPEG", quality=50)
    assert abs(decode(content.getvalue(), Preprocess(1, 8, 8)).astype(int) - 90).max() <= 1
    with pytest.raises(Undecodable, match="12000x9000 pixels are more than 80000000"):
        decode(content.getvalue(), Preprocess(1, 8, 8), box=(0.0, 0.0, 100.0, 100.0))  # which needs all of it


@pytest.mark.parametrize("brand", [b"heic", b"avif"])
def test_what_phones_make_is_told(brand):
    with pytest.raises(Undecodable, match="HEIC and AVIF cannot be read here: save it as JPEG or PNG"):
        decode(b"\0\0\0\x18ftyp" + brand + b"\0" * 40, Preprocess(3, 8, 8))


def test_bombs():
    """A small file that says it is huge is not decoded; its header is enough to know."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 9_000, 9_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    with pytest.raises(Undecodable, match="9000x9000 pixels are more than 80000000: a decompression bomb"):
        decode(bomb, Preprocess(3, 8, 8))


def test_it_is_the_same_every_time():
    content = encoded(pixels(6), "jpeg")
    assert np.array_equal(decode(content, Preprocess(3, 20, 20)), decode(io.BytesIO(content).read(), Preprocess(3, 20, 20)))


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"


def test_no_file_is_handed_to_another_program(monkeypatch):
    """Of finding 6: cat.png that holds EPS went to Ghostscript."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", None)  # to call it would be another error
    with pytest.raises(Undecodable, match="no image, or of an unknown kind"):
        decode(EPS, Preprocess(3, 8, 8))


@pytest.mark.parametrize("kind", ["ICO", "TGA", "PCX", "DDS", "SGI", "MSP", "XBM", "ICNS", "PDF", "SPIDER", "DIB"])
def test_formats_that_nobody_asked_for(kind):
    """Of finding 6: Pillow knows 43 of them."""
    content = io.BytesIO()
    mode = {"MSP": "1", "XBM": "1", "SPIDER": "F"}.get(kind, "RGB")
    Image.new(mode, (16, 16)).save(content, kind)
    with pytest.raises(Undecodable):
        decode(content.getvalue(), Preprocess(3, 8, 8))


@pytest.mark.slow
def test_large_pictures_in_threads_take_less_than_a_gigabyte():
    """Of finding 5: 16 bits a pixel, times the threads; and a header that tells of pixels that are not there."""
    code = (
        "import io, resource, struct, sys, zlib; from concurrent.futures import ThreadPoolExecutor\n"
        "from rankshot.data.decoding import Undecodable, decode; from rankshot.preprocess import Preprocess\n"
        "def chunk(kind, data):\n"
        "    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
        "side = 7000; rows = zlib.compress(bytes((2 * side + 1) * side), 1)\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 16, 0, 0, 0, 0))\n"
        "png += chunk(b'IDAT', rows) + chunk(b'IEND', b'')\n"
        "webp = b'RIFF' + struct.pack('<I', 26) + b'WEBPVP8L' + struct.pack('<I', 13) + b'\\x2f'\n"
        "webp += struct.pack('<I', 8899 | 8899 << 14) + bytes(9)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "def one(content):\n"
        "    try: return decode(content, Preprocess(3, 84, 84)).shape\n"
        "    except Undecodable as error: return str(error)[:60]\n"
        "with ThreadPoolExecutor(8) as pool: print(sorted(set(map(str, pool.map(one, [png] * 4 + [webp] * 4)))))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told, more = done.stdout.splitlines()
    assert "(3, 84, 84)" in told
    assert int(more) < 2**20  # KiB


def plainly(content, channels):
    """The formula of all pictures, without parts and without budgets."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.asarray(image)
        numbers = np.nan_to_num(values.astype(np.float64))
        highest = numbers.max(initial=0.0)
        if values.dtype.kind == "f" and highest <= 1:
            numbers = numbers * 255
        elif highest > 255:
            numbers = numbers / 257
        image = Image.fromarray(np.clip(np.rint(numbers), 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB" if channels == 3 else "L")
    small = np.asarray(image.resize((20, 24), Image.Resampling.BICUBIC, reducing_gap=2.0))
    return small[None] if channels == 1 else small.transpose(2, 0, 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "made_as",
    "L PNG, RGB PNG, RGBA PNG, LA PNG, P PNG, 1 PNG, I;16 PNG, F TIFF, I TIFF, CMYK TIFF, RGB TIFF, P GIF, RGBA WEBP, "
    "RGB BMP, L PPM, RGB PPM, RGB JPEG2000, CMYK JPEG, L JPEG".split(", "),
)
def test_pixels_as_they_always_were(made_as, channels):
    mode, kind = made_as.split()
    random = np.random.default_rng(0)
    made = Image.fromarray(random.integers(0, 256, (90, 70, 4), dtype=np.uint8))
    if mode in ("I;16", "I"):
        made = Image.fromarray(random.integers(0, 60_000, (90, 70)).astype(np.uint16 if mode == "I;16" else np.int32))
    elif mode == "F":
        made = Image.fromarray(random.random((90, 70)).astype(np.float32))
    else:
        made = made.convert("RGB").convert(mode) if mode in ("P", "1", "CMYK") else made.convert(mode)
    content = io.BytesIO()
    made.save(content, kind)
    got = decode(content.getvalue(), Preprocess(channels, 24, 20))
    assert np.array_equal(got, plainly(content.getvalue(), channels))
