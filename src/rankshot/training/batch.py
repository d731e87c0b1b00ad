"""What an update learns from."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """Which images, and what changes them.

    indices  (B,) which images
    noise    (B, RANDOM_NUMBERS) for their augmentation
    images   (B, C, H, W) uint8, of several processes the part of this one; None: they are on the device already
    """

    indices: Tensor
    noise: Tensor
    images: Tensor | None = None
