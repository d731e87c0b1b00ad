"""From the bytes of an image file to pixels: any size, any mode, upright."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from rankshot.preprocess import Preprocess

from .budget import PIXELS, OverBudget
from .headers import Header, Undecodable, check_exif, look
from .plain import A_PART, BYTES_A_PIXEL, plain

__all__ = ["SUFFIXES", "Box", "Undecodable", "decode", "picture_of", "view"]

# What counts as an image in a folder. Of the last three it is told that they cannot be read: phones make them.
SUFFIXES = (
    *(".bmp", ".gif", ".jpeg", ".jpg", ".jp2", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"),
    *(".avif", ".heic", ".heif"),
)
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
ORIENTATION = 0x0112  # in EXIF
LINE = 8  # bytes that Pillow has for where a line is: much, of a picture that is one pixel wide
# What Pillow's plugins raise on files that are damaged. It is a list of theirs, not ours: they read numbers wherever a file
# tells them to, and let come what comes.
DAMAGED = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    EOFError,
    MemoryError,
    RuntimeError,
    Warning,  # where somebody has made errors of them
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
# They also warn, of EXIF that is cut short and the like, which is nobody's business while pixels are as they should be. For
# the whole process and once: to do it for each picture would change the filters of other threads.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # `look` has an eye on that

# Pillow keeps pictures in blocks of 16 MB, which the C library, once some were freed, holds on to for each thread: eight
# threads had 1.4 GB of it (measured). Larger blocks it gives back to the system at once; then it was 0.4 GB.
Image.core.set_block_size(2**26)  # type: ignore[attr-defined]  # as its variable PILLOW_BLOCK_SIZE does

REDUCING_GAP = 2.0  # large pictures are averaged over whole pixels first, to at least twice the size wanted
T = TypeVar("T")
Box = tuple[float, float, float, float]  # left, top, right, bottom


def decode(content: bytes, preprocess: Preprocess, box: Box | None = None) -> NDArray[np.uint8]:
    """The picture in a file, cut to `box` and made ready: (C, H, W). Waits while other threads have all of the memory."""
    if preprocess.channels not in (1, 3):
        raise ValueError(f"pictures are grey or in colour, 1 or 3 channels: the network wants {preprocess.channels}")
    draft = None if box is not None else draft_of(preprocess)
    return _made_of(content, preprocess.shape, draft, lambda picture: fitted(picture, preprocess, box))


def view(content: bytes, longest: int) -> Image.Image:
    """The picture in a file for people: in colour, of its own form, no side longer than that and no larger than it is."""

    def smaller(picture: Image.Image) -> Image.Image:
        scale = min(1.0, longest / max(picture.size))
        width, height = (max(1, round(scale * side)) for side in picture.size)
        return picture.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=REDUCING_GAP)

    return _made_of(content, (3, longest, longest), (longest, longest), smaller)


def _made_of(
    content: bytes, shape: tuple[int, int, int], draft: tuple[int, int] | None, make: Callable[[Image.Image], T]
) -> T:
    """`make` of all of the picture, upright, as soon as there is memory for it and for a result of that shape."""
    header = look(content, draft)
    what = f"to decode {header.width}x{header.height} pixels of {header.kind}"
    try:
        with PIXELS.claim(needed(header, shape), what):
            return make(_upright(content, header, shape, draft))
    except OverBudget as error:
        raise Undecodable(str(error)) from None


def mode_of(channels: int) -> str:
    """As Pillow calls it."""
    return "RGB" if channels == 3 else "L"


def draft_of(preprocess: Preprocess) -> tuple[int, int]:
    """Large JPEGs are decoded at a half, a quarter or an eighth of their size, still twice what is needed."""
    return 2 * preprocess.width, 2 * preprocess.height


def background_of(preprocess: Preprocess) -> int:
    """What `pad` fills up with, before anything is inverted: the network sees 0 there."""
    return 255 if preprocess.invert else 0


def needed(header: Header, shape: tuple[int, int, int]) -> int:
    """Bytes that decoding takes at most."""
    a_pixel = 1 if shape[0] == 1 else 4  # bytes that Pillow has for a pixel of the result
    lines = 2 * LINE * max(header.width, header.height)
    loaded = header.pixels * header.stored + header.extra
    converted = header.pixels * (header.stored + a_pixel)
    turned = header.pixels * 2 * a_pixel
    # To resize, Pillow makes it as small as four times the result first, then as wide as that.
    beside = min(header.pixels, A_PART) * BYTES_A_PIXEL + 32 * shape[1] * shape[2] + 2**16
    return max(loaded, converted, turned) + lines + beside


def _upright(content: bytes, header: Header, shape: tuple[int, int, int], draft: tuple[int, int] | None) -> Image.Image:
    """All of the picture, in the mode of the result."""
    mode = mode_of(shape[0])
    try:
        image = Image.open(io.BytesIO(content), formats=(header.kind,))
        if sorted(image.size) != sorted((header.width, header.height)):
            raise Undecodable(f"it contradicts itself on its size: {header.width}x{header.height}, and {image.size}")
        if draft is not None:
            image.draft(mode, draft)
        image.load()
        turn = _turn(image)
        picture = plain(image, mode)
        if picture is not image:
            image.close()  # which frees its pixels
        return picture if turn is None else picture.transpose(turn)
    except Undecodable:
        raise
    except UnidentifiedImageError:
        raise Undecodable("no image, or of an unknown kind") from None
    except DAMAGED as error:
        raise Undecodable(f"cut short or damaged: {str(error)[:200] or type(error).__name__}") from None


def _turn(image: Image.Image) -> Image.Transpose | None:
    """What makes a photograph stand upright."""
    exif = image.info.get("exif")
    if isinstance(exif, bytes):
        check_exif(exif.removeprefix(b"Exif\0\0"))
    elif isinstance(packed := image.info.get("Raw profile type exif"), str):
        check_exif(bytes.fromhex("".join(packed.split("\n")[3:])).removeprefix(b"Exif\0\0"))
    return TURNS.get(image.getexif().get(ORIENTATION, 1))


def fitted(picture: Image.Image, preprocess: Preprocess, box: Box | None) -> NDArray[np.uint8]:
    """A picture of mode "L" or "RGB", as pixels (C, H, W)."""
    if box is not None:
        picture = picture.crop(_inside(box, picture.size))
    size, resampling = (preprocess.width, preprocess.height), Image.Resampling[preprocess.interpolation.upper()]
    if preprocess.fit == "crop":
        small = picture.resize(size, resampling, box=_middle(picture.size, size), reducing_gap=REDUCING_GAP)
    elif preprocess.fit == "pad":
        small = _padded(picture, size, resampling, background_of(preprocess))
    else:
        small = picture.resize(size, resampling, reducing_gap=REDUCING_GAP)
    values = np.asarray(small)
    pixels = values[None] if preprocess.channels == 1 else values.transpose(2, 0, 1)
    return 255 - pixels if preprocess.invert else np.ascontiguousarray(pixels)


def _middle(size: tuple[int, int], target: tuple[int, int]) -> Box:
    """The largest part of a picture in its middle that has the form of what is wanted."""
    scale = min(size[0] / target[0], size[1] / target[1])
    # Not past its edges, which Pillow refuses: 29 / 28 * 28 is more than 29.
    width, height = min(size[0], scale * target[0]), min(size[1], scale * target[1])
    left, top = (size[0] - width) / 2, (size[1] - height) / 2
    return left, top, left + width, top + height


def _padded(picture: Image.Image, size: tuple[int, int], resampling: Image.Resampling, background: int) -> Image.Image:
    """All of a picture, in the middle."""
    scale = min(size[0] / picture.width, size[1] / picture.height)
    inner = tuple(max(1, round(scale * side)) for side in picture.size)
    canvas = Image.new(picture.mode, size, background if picture.mode == "L" else (background,) * 3)
    small = picture.resize((inner[0], inner[1]), resampling, reducing_gap=REDUCING_GAP)
    canvas.paste(small, ((size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2))
    return canvas


def picture_of(pixels: NDArray[np.uint8]) -> Image.Image:
    """(C, H, W) of 1 or 3 channels, as Pillow has it."""
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def _inside(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Whole pixels, clipped to the picture: boxes that people draw run past it."""
    if not all(map(math.isfinite, box)):
        raise Undecodable(f"the box {box} is none")
    left, top = max(0, round(box[0])), max(0, round(box[1]))
    right, bottom = min(size[0], round(box[2])), min(size[1], round(box[3]))
    if right <= left or bottom <= top:
        raise Undecodable(f"the box {box} lies outside of the picture, {size[0]}x{size[1]}")
    return left, top, right, bottom
