"""`load`: any data set by its name, prepared on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .image_set import ImageSet


def _glyphs(split: str, root: Path | None) -> ImageSet:
    from . import glyphs

    return glyphs.load(split, root)


LOADERS: dict[str, Callable[[str, Path | None], ImageSet]] = {"glyphs": _glyphs}


def load(name: str, split: str = "train", root: str | Path | None = None) -> ImageSet:
    """The images of one split of a data set; `root` is the folder of all prepared data (see `cache.root_of`)."""
    if name not in LOADERS:
        raise ValueError(f"unknown data set {name!r}: there is {', '.join(map(repr, LOADERS))}")
    return LOADERS[name](split, None if root is None else Path(root))
