"""Where a network looks: which parts of a picture make it like another one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .embedder import Embedder, Vectors

CELLS = 6  # of a side
MARGIN = 0.25  # of a cell, that is covered around it too


def similarity_map(embedder: Embedder, pixels: NDArray[np.uint8], like: Vectors) -> NDArray[np.float32]:
    """(CELLS, CELLS): by how much the cosine with `like` falls when a part of the picture is covered with its mean colour.

    Any network can be asked so. Parts with large numbers are what makes the two alike; where one is negative, the picture
    is more like the other without that part.

    pixels   (C, H, W), as the network sees it
    like     (D,) of length 1
    """
    height, width = pixels.shape[1:]
    mean = pixels.mean((1, 2)).round().astype(np.uint8)[:, None, None]
    views = [pixels]
    for row in range(CELLS):
        for column in range(CELLS):
            top, bottom = _part(row, height)
            left, right = _part(column, width)
            covered = pixels.copy()
            covered[:, top:bottom, left:right] = mean
            views.append(covered)
    cosines = embedder(views) @ like
    return np.asarray(cosines[0] - cosines[1:], np.float32).reshape(CELLS, CELLS)


def _part(number: int, size: int) -> tuple[int, int]:
    first, last = (number - MARGIN) * size / CELLS, (number + 1 + MARGIN) * size / CELLS
    return max(0, round(first)), min(size, round(last))
