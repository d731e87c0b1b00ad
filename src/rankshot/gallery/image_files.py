"""Image files in folders, one after another: no more is listed at once than one folder and those around it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rankshot.data.decoding import SUFFIXES


def image_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Files as they are given, and what looks like an image in folders and the folders within, but for hidden ones.

    In the order that they are given in, and within folders in that of their names: see `natural`.
    """
    for path in paths:
        if Path(path).is_dir():
            yield from _within(Path(path))
        elif Path(path).exists():
            yield Path(path)
        else:
            raise FileNotFoundError(f"there is no {path}")


def natural(name: str) -> tuple[list[str | int], str]:
    """To sort names by as people do: 2.jpg comes before 10.jpg.

    >>> sorted(["10.jpg", "2.jpg", "b", "02.jpg"], key=natural)
    ['02.jpg', '2.jpg', '10.jpg', 'b']
    """
    parts = re.split("([0-9]+)", name)  # every second one is a number
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name


def _within(folder: Path) -> Iterator[Path]:
    """Without recursion: folders may lie deeper within each other than Python can go."""
    waiting = [(os.fspath(folder), True)]
    while waiting:
        here, is_folder = waiting.pop()
        if not is_folder:
            yield Path(here)
            continue
        try:
            with os.scandir(here) as entries:
                inside = sorted(filter(_counts, entries), key=lambda entry: natural(entry.name), reverse=True)
        except OSError:
            if here == os.fspath(folder):
                raise
            yield Path(here)  # who reads it is told
            continue
        waiting += [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in inside]


def _counts(entry: os.DirEntry[str]) -> bool:
    """A folder, or what looks like an image. A link to a folder is none: it may lead back to where it is."""
    is_either = entry.is_dir(follow_symlinks=False) or entry.name.lower().endswith(SUFFIXES)
    return is_either and not entry.name.startswith(".")


def examples(folder: Path) -> dict[str, list[Path]]:
    """Of a folder with a folder of images for each class: class -> its images, in the order of their names."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    classes = {name: sorted(image_files([folder / name])) for name in names}
    classes = {name: paths for name, paths in classes.items() if paths}
    if not classes:
        raise ValueError(f"{folder} must hold a folder of images for each class: there is none")
    return classes
