"""`glyphs`: real letters and symbols of 24 alphabets, drawn from the fonts that matplotlib installs. Nothing to download.

A class is a character. Its 20 images come from 20 "drawers", each with a font, a weight, a slant, a hand that shakes
(affine and elastic distortion) and some noise. Alphabets are split, as in Omniglot: those of the test split share no
character with training.

Every image is made from its own random numbers, by Pillow alone, so the bytes depend on the seed and on the versions of
Pillow and FreeType, which the manifest records, and on nothing else.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, features

from rankshot.cache import made_whole, root_of

from .alphabets import ALPHABETS
from .listing import SPLITS
from .store import IMAGES, write_manifest

log = logging.getLogger(__name__)

SIZE = 28
DRAWERS = 20
VERSION = 2  # of the drawing and of how it is stored: anything that changes a byte raises it

FONTS = (
    *(f"DejaVuSans{style}.ttf" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}.ttf" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"DejaVuSansMono{style}.ttf" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"STIXGeneral{style}.ttf" for style in ("", "Bol", "Italic", "BolIta")),
)

CANVAS = 4 * SIZE  # characters are drawn and distorted large, then made small
GLYPH = 72  # the longer side of an undistorted character, on the canvas
TURN, SHEAR, STRETCH = 0.35, 0.35, 0.3  # radians; ratio; logarithm of the scale along each axis
CELLS, WOBBLE = 4, 7.0  # the elastic grid, and how far its nodes move
NOISE = 25  # grey levels, either way


def prepare(root: Path | None = None, seed: int = 0) -> Path:
    """The folder of the prepared data set, drawn the first time (some seconds)."""
    recipe, folder = drawn_with(seed), folder_in(root_of(root), seed)
    if not folder.is_dir():
        log.info("drawing the data set glyphs, once, into %s", folder)
        with made_whole(folder) as making:
            with (making / IMAGES).open("wb") as file:
                for split in SPLITS:
                    file.write(draw_split(split, seed).tobytes())
            classes = [
                {"name": f"{alphabet}/U+{ord(character):04X}", "split": split, "images": DRAWERS}
                for split in SPLITS
                for alphabet, character in classes_of(split)
            ]
            source = "drawn from matplotlib's fonts"
            content = {"name": "glyphs", "source": [source], "shape": [1, SIZE, SIZE], "options": recipe}
            write_manifest(making, {**content, "images": DRAWERS * len(classes), "classes": classes, "skipped": []})
    return folder


def folder_in(root: Path, seed: int = 0) -> Path:
    """Where it lies below a root: drawn otherwise, it would lie elsewhere."""
    return root / "glyphs" / "-".join(f"{key}{value}" for key, value in drawn_with(seed).items())


def draw_split(split: str, seed: int = 0) -> NDArray[np.uint8]:
    """(n, 1, 28, 28): all images of "train", "val" or "test", drawer by drawer within a class, class by class."""
    classes = classes_of(split)
    images = np.empty((len(classes) * DRAWERS, 1, SIZE, SIZE), dtype=np.uint8)
    for number, (_, character) in enumerate(classes):
        for drawer in range(DRAWERS):
            images[number * DRAWERS + drawer, 0] = draw(character, drawer, seed)
    return images


def classes_of(split: str) -> list[tuple[str, str]]:
    """(alphabet, character) of every class of a split."""
    return [
        (alphabet, character) for where, alphabet, characters in ALPHABETS if where == split for character in characters
    ]


def draw(character: str, drawer: int, seed: int) -> NDArray[np.uint8]:
    """(28, 28): one character by one drawer, ink 255 on 0."""
    random = np.random.Generator(np.random.PCG64([seed, ord(character), drawer]))
    fonts = fonts_with(character)
    font = _font(fonts[int(random.integers(len(fonts)))])
    upright = _centred(character, font, stroke=int(random.integers(3)))
    quads = list(_distortion(random))
    shaken = upright.transform((CANVAS, CANVAS), Image.Transform.MESH, quads, Image.Resampling.BILINEAR)
    small = np.asarray(shaken.resize((SIZE, SIZE), Image.Resampling.BOX), dtype=np.int16)
    noisy = small + random.integers(-NOISE, NOISE + 1, size=small.shape, dtype=np.int16)
    drawn: NDArray[np.uint8] = np.clip(noisy, 0, 255).astype(np.uint8)
    return drawn


def _centred(character: str, font: ImageFont.FreeTypeFont, stroke: int) -> Image.Image:
    """The character upright in the middle of the canvas, its longer side GLYPH long, whatever the font's metrics."""
    large = Image.new("L", (2 * CANVAS, 2 * CANVAS))
    ImageDraw.Draw(large).text((CANVAS // 2, CANVAS // 2), character, font=font, fill=255, stroke_width=stroke)
    box = large.getbbox()
    if box is None:
        raise ValueError(f"the font draws nothing for U+{ord(character):04X}")
    ink = large.crop(box)
    scale = GLYPH / max(ink.size)
    ink = ink.resize((max(1, round(ink.width * scale)), max(1, round(ink.height * scale))), Image.Resampling.BICUBIC)
    canvas = Image.new("L", (CANVAS, CANVAS))
    canvas.paste(ink, ((CANVAS - ink.width) // 2, (CANVAS - ink.height) // 2))
    return canvas


def _distortion(random: np.random.Generator) -> Iterator[tuple[tuple[int, int, int, int], tuple[float, ...]]]:
    """Quadrilaterals for Pillow's mesh: an affine map about the middle, and every node of a grid moved by itself."""
    turn, shear = random.uniform(-TURN, TURN), random.uniform(-SHEAR, SHEAR)
    wide, high = (math.exp(exponent) for exponent in random.uniform(-STRETCH, STRETCH, size=2))
    cos, sin = math.cos(turn), math.sin(turn)
    affine = ((cos * wide, (cos * shear - sin) * high), (sin * wide, (sin * shear + cos) * high))
    shakes = random.uniform(-WOBBLE, WOBBLE, size=(CELLS + 1, CELLS + 1, 2))
    step, middle = CANVAS // CELLS, CANVAS / 2

    def source(row: int, column: int) -> tuple[float, float]:
        x, y = column * step - middle, row * step - middle
        shake_x, shake_y = shakes[row, column].tolist()
        return (
            affine[0][0] * x + affine[0][1] * y + middle + shake_x,
            affine[1][0] * x + affine[1][1] * y + middle + shake_y,
        )

    for row in range(CELLS):
        for column in range(CELLS):
            box = (column * step, row * step, (column + 1) * step, (row + 1) * step)
            corners = ((row, column), (row + 1, column), (row + 1, column + 1), (row, column + 1))
            yield box, tuple(coordinate for corner in corners for coordinate in source(*corner))


@cache
def fonts_with(character: str) -> tuple[str, ...]:
    """The fonts that have it, in the order of FONTS."""
    return tuple(font for font in FONTS if ord(character) in _characters(font))


@cache
def _characters(font: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_folder() / font)).get_charmap())


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_folder() / name), 64, layout_engine=ImageFont.Layout.BASIC)


@cache
def _folder() -> Path:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("glyphs is drawn from matplotlib's fonts: pip install 'rankshot[train]'") from error
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def drawn_with(seed: int) -> dict[str, object]:
    """What the bytes depend on."""
    return {"v": VERSION, "seed": seed, "pillow": PIL.__version__, "freetype": features.version_module("freetype2")}
