"""A contact sheet: a row of images for each of some classes, to look at before anything is trained."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rankshot.files import output, write_all
from rankshot.limits import whole
from rankshot.terminal import printable

from .decoding import picture_of
from .image_set import ImageSet

GAP, LABEL = 4, 220
MOST_A_SIDE, MOST_PIXELS = 500, 10**8


def contact_sheet(images: ImageSet, path: str | Path, *, classes: int = 12, per_class: int = 12, seed: int = 0) -> None:
    """Write a picture of some classes, one row a class: its name and its first images.

    Args:
        images: the data set.
        path: of the file to write; its suffix tells the format, such as .png.
        classes: how many, drawn at random and shown in the order of the data set.
        per_class: images of each class.
        seed: of the choice of classes.

    Raises:
        ValueError: if the suffix is unknown, a number is out of range, or the sheet would be too large.

    Examples:
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from PIL import Image
        >>> from rankshot import data
        >>> images = data.ImageSet(np.zeros((6, 1, 28, 28), np.uint8), [0, 0, 0, 1, 1, 1], ["cat", "dog"])
        >>> data.contact_sheet(images, Path("sheet.png"), per_class=3)
        >>> with Image.open("sheet.png") as sheet:
        ...     sheet.size  # 28 pixels are shown as 56; 220 are for the name
        (404, 124)
    """
    whole("classes", classes, 1, MOST_A_SIDE)
    whole("per_class", per_class, 1, MOST_A_SIDE)
    random = np.random.default_rng(whole("seed", seed, 0, 2**32 - 1))
    chosen = sorted(random.permutation(len(images.classes))[:classes].tolist())
    _, height, width = images.images.shape[1:]
    scale = max(1, 64 // max(height, width))
    cell_w, cell_h = width * scale + GAP, height * scale + GAP
    sheet = blank(LABEL + per_class * cell_w + GAP, len(chosen) * cell_h + GAP)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for row, label in enumerate(chosen):
        top = GAP + row * cell_h
        draw.text((GAP, top + cell_h // 2 - 9), _short(images.classes[label]), fill="black", font=font)
        for column, index in enumerate(np.flatnonzero(images.labels == label)[:per_class]):
            picture = picture_of(images.images[index]).resize((width * scale, height * scale), Image.Resampling.NEAREST)
            sheet.paste(picture, (LABEL + column * cell_w, top))
    write_picture(sheet, Path(path))


def blank(width: int, height: int) -> Image.Image:
    """White, to put pictures on."""
    if width * height > MOST_PIXELS:
        raise ValueError(f"a sheet of {width:,} x {height:,} pixels is too large, {MOST_PIXELS:,} are the most: show fewer")
    return Image.new("RGB", (width, height), "white")


def write_picture(picture: Image.Image, path: Path) -> None:
    """Of the kind that the name of the file asks for."""
    Image.init()  # which knows the kinds
    if path.suffix.lower() not in Image.EXTENSION:
        raise ValueError(f"{path} has an unknown file extension: name a picture, such as sheet.png")
    content = io.BytesIO()
    picture.save(content, Image.EXTENSION[path.suffix.lower()])
    with output(path) as file:
        write_all(file, content.getvalue())


def _short(name: str, most: int = 30) -> str:
    """The end of a long name tells more than its beginning."""
    name = printable(name)
    return name if len(name) <= most else "…" + name[1 - most :]
