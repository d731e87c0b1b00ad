"""Whatever people have images in: paths, bytes, Pillow's, arrays. Out come pixels as a network wants them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rankshot.data.budget import FILES, MOST_BYTES, OverBudget
from rankshot.data.decoding import Undecodable, decode, picture_of
from rankshot.files import read_whole
from rankshot.preprocess import Preprocess


class Failure(NamedTuple):
    """An image that could not be read, and why.

    Attributes:
        name: its path, or its place in the list.
        why: what is wrong with it.

    Examples:
        >>> import torch
        >>> import rankshot
        >>> embedder = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 1, 2))
        >>> gallery = rankshot.Gallery(embedder=embedder)
        >>> gallery.add([b"no picture"]).failures
        [Failure(name='image 0', why='no image, or of an unknown kind')]
    """

    name: str
    why: str


class Unreadable(ValueError):
    """Some images of a batch could not be read.

    Args:
        failures: which, and why.
        of: how many images there were.

    Attributes:
        failures: which, and why.

    Examples:
        >>> import torch
        >>> import rankshot
        >>> embedder = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 1, 2))
        >>> try:
        ...     embedder([b"no picture"])
        ... except rankshot.gallery.Unreadable as error:
        ...     print(error)
        1 of 1 images cannot be read: image 0: no image, or of an unknown kind
    """

    def __init__(self, failures: list[Failure], of: int) -> None:
        self.failures = failures
        first = "; ".join(f"{failure.name}: {failure.why}" for failure in failures[:5])
        more = f"; and {len(failures) - 5} more" if len(failures) > 5 else ""
        super().__init__(f"{len(failures)} of {of} images cannot be read: {first}{more}")


def pixels_of(image: Any, preprocess: Preprocess) -> NDArray[np.uint8]:
    """One image -> (C, H, W) uint8, made ready as a network wants it.

    A path, the bytes of a file, a Pillow image, or an array or tensor: (H, W), (H, W, 3) or (C, H, W), of bytes, or of
    floats from 0 to 1. An array or tensor that has the network's own shape is taken as it is, whatever its ink.
    """
    if isinstance(image, (str, os.PathLike)):
        with file_of(image) as read:
            return decode(read, preprocess)
    if isinstance(image, bytes):
        return decode(image, preprocess)
    if isinstance(image, Image.Image):
        content = io.BytesIO()
        image = image.convert("RGB") if image.mode in ("CMYK", "YCbCr", "LAB", "HSV") else image
        image.save(content, "TIFF" if image.mode in ("F", "I") else "PNG")
        return decode(content.getvalue(), preprocess)
    values = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
    if values.shape == preprocess.shape:
        return _bytes(values)
    if values.ndim == 3 and values.shape[2] in (1, 3) and values.shape[0] not in (1, 3):
        values = values.transpose(2, 0, 1)
    elif values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[0] not in (1, 3) or 0 in values.shape:
        raise Undecodable(f"an array of shape {values.shape} is no image: (H, W), (H, W, 3) or (C, H, W) is one")
    return pixels_of(picture_of(_bytes(values)), preprocess)


@contextmanager
def file_of(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """What is in it, counted as long as it is needed; whatever is wrong with it is an `Undecodable`."""
    try:
        with FILES.claim(os.stat(path).st_size, "its file"):
            yield read_whole(Path(path), MOST_BYTES, follow=True)
    except (OSError, OverBudget) as error:
        raise Undecodable(getattr(error, "strerror", None) or str(error)) from None
    except ValueError as error:  # of a name that no file can have
        raise error if isinstance(error, Undecodable) else Undecodable(str(error)) from None


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    if values.dtype == np.uint8:
        return values
    if values.dtype == bool:
        return values.astype(np.uint8) * 255
    if not np.issubdtype(values.dtype, np.floating):
        raise Undecodable(f"pixels must be bytes, or floats from 0 to 1, got {values.dtype}")
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        raise Undecodable(f"floating-point pixels must be from 0 to 1, got {values.min():g} to {values.max():g}")
    whole: NDArray[np.uint8] = np.rint(values * 255).astype(np.uint8)
    return whole


def own_name(image: Any) -> str | None:
    """The path of an image, where it has one."""
    return str(image) if isinstance(image, (str, os.PathLike)) else None


def name_of(image: Any, number: int) -> str:
    """What to call an image by: its path, or its number."""
    return own_name(image) or f"image {number}"


Chunk = tuple[list[int], list[NDArray[np.uint8]], list[Failure]]


def decoded(images: Iterable[Any], preprocess: Preprocess, at_once: int, workers: int = 2) -> Iterator[Chunk]:
    """Chunk by chunk: the places of images that could be read, their pixels, and who failed.

    Threads decode the next chunk while the caller works on this one; no more than two chunks are ever in memory. Arrays
    that are ready go past them: a thread would take longer than it has to do.
    """

    def is_ready(image: Any) -> bool:
        return isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape == preprocess.shape

    def one(numbered: tuple[int, Any]) -> NDArray[np.uint8] | Failure:
        index, image = numbered
        try:
            return pixels_of(image, preprocess)
        except Undecodable as error:
            return Failure(name_of(image, index), str(error))

    def gathered(indices: list[int], coming: list[Any]) -> Chunk:
        results = [each.result() if isinstance(each, Future) else each for each in coming]
        readable = [
            (index, pixels) for index, pixels in zip(indices, results, strict=True) if not isinstance(pixels, Failure)
        ]
        return (
            [index for index, _ in readable],
            [pixels for _, pixels in readable],
            [f for f in results if isinstance(f, Failure)],
        )

    numbered = enumerate(images)
    with ThreadPoolExecutor(workers) as pool:
        waiting = None
        while chunk := list(islice(numbered, at_once)):
            coming = [image if is_ready(image) else pool.submit(one, (index, image)) for index, image in chunk]
            if waiting is not None:
                yield gathered(*waiting)
            waiting = [index for index, _ in chunk], coming
        if waiting is not None:
            yield gathered(*waiting)
