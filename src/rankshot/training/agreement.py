"""Processes that train one run together must have been given the same; what differs is found before the first update."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import torch

from rankshot.data import ImageSet
from rankshot.gathering import failing_together, is_shared, told_by_all
from rankshot.version import __version__

from .config import TrainConfig

MAY_DIFFER = ("data", "root", "device", "images_on", "logger")  # of one machine; the images themselves are compared
HASHED = 2**26  # bytes of images


def check_alike(config: TrainConfig, train: ImageSet, held_out: ImageSet | None) -> None:
    """The same settings, images and versions on all processes."""
    if not is_shared():
        return
    settings = {name: value for name, value in config.flat().items() if name not in MAY_DIFFER}
    here = {
        **json.loads(json.dumps(settings, default=str)),
        "training images": digest(train),
        "validation images": None if held_out is None else digest(held_out),
        "rankshot": __version__,
        "torch": torch.__version__,
    }
    first, *others = told_by_all(here)
    with failing_together():
        for who, theirs in enumerate(others, start=1):
            for name in {**first, **theirs}:
                if first.get(name) != theirs.get(name):
                    raise ValueError(
                        f"processes must be given the same: {name} is {first.get(name)!r} in process 0 and "
                        f"{theirs.get(name)!r} in process {who}"
                    )


def digest(images: ImageSet) -> str:
    """Of the classes, the labels, and as many images as can be read in a moment, evenly chosen."""
    about: list[Any] = [images.classes, images.images.shape]
    found = hashlib.sha256(json.dumps(about).encode())
    found.update(np.ascontiguousarray(images.labels).tobytes())
    found.update(np.ascontiguousarray(images.images[:: max(1, images.images.nbytes // HASHED)]).tobytes())
    return found.hexdigest()[:16]
