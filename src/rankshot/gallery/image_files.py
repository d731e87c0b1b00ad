"""Image files in folders, one after another: a million of them are never listed at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rankshot.data.decoding import SUFFIXES


def image_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Files as they are given, and what looks like an image in folders and the folders within, but for hidden ones."""
    for path in paths:
        if Path(path).is_dir():
            yield from _within(Path(path))
        elif Path(path).exists():
            yield Path(path)
        else:
            raise FileNotFoundError(f"there is no {path}")


def _within(folder: Path) -> Iterator[Path]:
    """Without recursion: folders may lie deeper within each other than Python can go."""
    waiting = [os.fspath(folder)]
    while waiting:
        here = waiting.pop()
        try:
            entries = os.scandir(here)
        except OSError:
            if here == os.fspath(folder):
                raise
            yield Path(here)  # who reads it is told
            continue
        with entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):  # a link may lead back to where it is
                    waiting.append(entry.path)
                elif entry.name.lower().endswith(SUFFIXES):
                    yield Path(entry.path)


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
