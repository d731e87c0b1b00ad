"""From the bytes of an image file to pixels: any size, any mode, upright."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".jp2", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
MOST_PIXELS = 80_000_000  # a quarter of a gigabyte as RGB; Pillow warns of some more, and refuses twice that
BACKGROUND = "white"  # behind what is transparent

Box = tuple[float, float, float, float]  # left, top, right, bottom


class Undecodable(ValueError):
    """A file that is no image, or none that should be decoded."""


def decode(content: bytes, shape: tuple[int, int, int], box: Box | None = None, invert: bool = False) -> NDArray[np.uint8]:
    """The picture in a file, cut to `box` and resized to `shape` (C, H, W), where C is 1 for grey and 3 for colour.

    `invert`: ink that is dark in the file is bright in the result.
    """
    channels, height, width = shape
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Undecodable(f"{image.width}x{image.height} pixels are more than {MOST_PIXELS}: a decompression bomb?")
            if box is None:
                # Large JPEGs are decoded at a half, a quarter or an eighth of their size, still twice what is needed.
                image.draft("RGB" if channels == 3 else "L", (2 * width, 2 * height))
            picture = _plain(ImageOps.exif_transpose(image), "RGB" if channels == 3 else "L")
    except Undecodable:
        raise
    except UnidentifiedImageError:
        raise Undecodable("no image, or of an unknown kind") from None
    except Exception as error:  # Pillow's plugins raise whatever comes: OSError, SyntaxError, struct.error, …
        raise Undecodable(str(error) or type(error).__name__) from None
    if box is not None:
        picture = picture.crop(_inside(box, picture.size))
    small = np.asarray(picture.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0))
    pixels = small[None] if channels == 1 else small.transpose(2, 0, 1)
    return 255 - pixels if invert else np.ascontiguousarray(pixels)


def picture_of(pixels: NDArray[np.uint8]) -> Image.Image:
    """(C, H, W) of 1 or 3 channels, as Pillow has it."""
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """Grey or colour, 8 bits, nothing transparent."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        behind = Image.new("RGBA", image.size, BACKGROUND)
        image = Image.alpha_composite(behind, image)
    return image if image.mode == mode else image.convert(mode)


def _eight_bits(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """16-bit and floating-point pixels; what is already within 8 bits stays."""
    numbers = np.nan_to_num(values.astype(np.float64))
    highest = numbers.max(initial=0.0)
    if values.dtype.kind == "f" and highest <= 1:
        numbers = numbers * 255
    elif highest > 255:
        numbers = numbers / 257
    return np.clip(np.rint(numbers), 0, 255).astype(np.uint8)


def _inside(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Whole pixels, clipped to the picture: boxes that people draw run past it."""
    left, top = max(0, round(box[0])), max(0, round(box[1]))
    right, bottom = min(size[0], round(box[2])), min(size[1], round(box[3]))
    if right <= left or bottom <= top:
        raise Undecodable(f"the box {box} lies outside of the picture, {size[0]}x{size[1]}")
    return left, top, right, bottom
