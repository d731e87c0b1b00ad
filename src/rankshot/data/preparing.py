"""Decode a whole listing, in parallel, into the folder of its cache: there whole or not at all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.cache import made_whole
from rankshot.files import named
from rankshot.version import __version__

from .budget import FILES, Claim
from .decoding import Undecodable, decode
from .listing import Listing, Picture
from .store import IMAGES, write_manifest

AHEAD = 64  # files read before they are decoded, for each thread

Progress = Callable[[int, int], None]  # how many of how many


def prepare(
    listing: Listing,
    folder: Path,
    *,
    strict: bool = False,
    progress: Progress | None = None,
    also: Callable[[Path], None] | None = None,
) -> dict[str, Any]:
    """Into `folder`, which must not be there yet; returns the manifest. `also` puts more into it.

    Files that cannot be decoded are left out, counted and listed; with `strict` the first of them is an error. Pillow
    decodes without holding Python's lock, so threads are enough, and nothing of the pixels is copied between processes.
    """
    labelled = [
        (number, picture) for number, class_listing in enumerate(listing.classes) for picture in class_listing.pictures
    ]
    good = np.zeros(len(labelled), dtype=bool)
    skipped: dict[str, str] = {}
    for tree in listing.trees:
        skipped |= {str(tree.path / name): why for name, why in tree.damaged.items()}
    if strict and skipped:
        raise ValueError("{}: {}".format(*next(iter(skipped.items()))))

    with made_whole(folder) as making:
        shape = (len(labelled), *listing.preprocess.shape)
        _allocate(making / IMAGES, int(np.prod(shape)))
        pixels = np.memmap(making / IMAGES, dtype=np.uint8, mode="r+", shape=shape)
        for done, (index, why) in enumerate(_decoded(listing, [picture for _, picture in labelled], pixels), start=1):
            if why is None:
                good[index] = True
            else:
                picture = labelled[index][1]
                file = str(listing.trees[picture.tree].path / picture.name)
                if strict:
                    raise ValueError(f"{file} is no image that can be read: {why}")
                skipped[file] = why
            if progress is not None:
                progress(done, len(labelled))
        counts = np.bincount(
            [number for (number, _), kept in zip(labelled, good, strict=True) if kept], minlength=len(listing.classes)
        )
        for class_listing, count in zip(listing.classes, counts, strict=True):
            if not count:
                first = listing.trees[class_listing.pictures[0].tree].path / class_listing.pictures[0].name
                raise ValueError(
                    f"{listing.name}: no image of class {class_listing.name!r} can be read; {first}: {skipped[str(first)]}"
                )
        _close_gaps(pixels, good)
        pixels.flush()
        del pixels
        os.truncate(making / IMAGES, int(good.sum()) * int(np.prod(shape[1:])))
        content = {
            "name": listing.name,
            "rankshot": __version__,
            "source": [str(tree.path.resolve()) for tree in listing.trees],
            "shape": list(listing.preprocess.shape),
            "preprocess": listing.preprocess.to_json(),
            "options": dict(listing.options),
            "images": int(good.sum()),
            "classes": [
                {"name": class_listing.name, "split": class_listing.split, "images": int(count)}
                for class_listing, count in zip(listing.classes, counts, strict=True)
            ],
            "skipped": [{"file": file, "why": why} for file, why in skipped.items()],
        }
        if also is not None:
            also(making)
        return write_manifest(making, content)


def _allocate(path: Path, size: int) -> None:
    """Room on the disk for all of it, now: a mapped file that finds the disk full later kills the process."""
    with named(path), path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for start in range(0, size, 2**24):
                file.write(bytes(min(2**24, size - start)))


def _decoded(listing: Listing, pictures: list[Picture], pixels: NDArray[np.uint8]) -> Iterator[tuple[int, str | None]]:
    """Decode every picture into its place; yields its index, and why it stays empty if it does."""

    def one(index: int, content: bytes | OSError, claim: Claim) -> tuple[int, str | None]:
        with claim:
            if isinstance(content, OSError):
                return index, content.strerror or str(content)
            try:
                pixels[index] = decode(content, listing.preprocess, pictures[index].box)
            except Undecodable as error:
                return index, str(error)
            return index, None

    threads = os.cpu_count() or 1
    waiting: deque[Future[tuple[int, str | None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for index, content in _contents(listing, pictures):
                size = 0 if isinstance(content, OSError) else len(content)
                waiting.append(pool.submit(one, index, content, FILES.claim(size, "a file")))
                if len(waiting) > AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _contents(listing: Listing, pictures: list[Picture]) -> Iterator[tuple[int, bytes | OSError]]:
    """The bytes of every picture, tree by tree in the order that is fastest there."""
    for number, tree in enumerate(listing.trees):
        indices: dict[str, list[int]] = {}
        for index, picture in enumerate(pictures):
            if picture.tree == number:
                indices.setdefault(picture.name, []).append(index)
        for name, content in tree.read(list(indices)):
            for index in indices.pop(name):
                yield index, content
        for name, missing in indices.items():
            for index in missing:
                yield index, FileNotFoundError(f"{name} is not there")


def _close_gaps(pixels: NDArray[np.uint8], good: NDArray[np.bool_]) -> None:
    """Move what was decoded together, in place."""
    if good.all():
        return
    for to, origin in enumerate(np.flatnonzero(good)):
        if to != origin:
            pixels[to] = pixels[origin]
