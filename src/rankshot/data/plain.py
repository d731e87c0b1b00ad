"""Any mode that Pillow has -> grey or colour of 8 bits, nothing transparent; part by part, without copies of all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

BACKGROUND = "white"  # behind what is transparent
SIXTEEN_BITS = 257  # what they are divided by, so that 65535 becomes 255
TRANSPARENT = ("RGBA", "LA", "PA", "RGBa", "La")
A_PART = 2**18  # pixels that are converted at once
BYTES_A_PIXEL = 48  # of a part, at most: three times as floats of 8 bytes, and what they came from

Corners = tuple[int, int, int, int]


def plain(image: Image.Image, mode: str) -> Image.Image:
    """`image` in mode "L" or "RGB"; itself, where it is."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        change = _eight_bits(image)
    elif image.mode in TRANSPARENT or "transparency" in image.info:
        change = _on_background
    elif image.mode != mode:
        change = _as_it_is
    else:
        return image
    result = Image.new(mode, image.size)
    for box in parts(image.size):
        part = change(image.crop(box))
        result.paste(part if part.mode == mode else part.convert(mode), box)
    return result


def parts(size: tuple[int, int]) -> Iterator[Corners]:
    """Boxes of at most A_PART pixels that cover all."""
    width = min(size[0], A_PART)
    height = max(1, A_PART // width)
    for top in range(0, size[1], height):
        for left in range(0, size[0], width):
            yield left, top, min(size[0], left + width), min(size[1], top + height)


def _as_it_is(part: Image.Image) -> Image.Image:
    return part


def _on_background(part: Image.Image) -> Image.Image:
    part = part.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", part.size, BACKGROUND), part)


def _eight_bits(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """16-bit and floating-point pixels; what is already within 8 bits stays. The highest of all tells which they are."""
    highest = max(_numbers(image.crop(box)).max(initial=0.0) for box in parts(image.size))
    times, by = (255, 1) if image.mode == "F" and highest <= 1 else (1, SIXTEEN_BITS if highest > 255 else 1)

    def change(part: Image.Image) -> Image.Image:
        return Image.fromarray(np.clip(np.rint(_numbers(part) * times / by), 0, 255).astype(np.uint8))

    return change


def _numbers(part: Image.Image) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = np.nan_to_num(np.asarray(part).astype(np.float64))
    return numbers
