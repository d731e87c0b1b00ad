"""Processes that train one run together must have been given the same; what differs is found before the first update."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import torch

from rankshot.data import ImageSet
from rankshot.gathering import check_same, is_shared
from rankshot.methods import Method
from rankshot.version import __version__

from .assembly import where_to_train
from .config import TrainConfig

MAY_DIFFER = ("data", "root", "device", "images_on", "logger")  # of one machine; the images themselves are compared
HASHED = 2**26  # bytes of images


def check_alike(config: TrainConfig, method: Method, train: ImageSet, held_out: ImageSet | None) -> None:
    """The same settings, also of objects that were given, images, kind of device and versions on all processes."""
    if not is_shared():
        return
    device, precision = where_to_train(config)
    check_same(
        {
            "method": config.method.name,  # what others follow from comes first
            "training images": digest(train),
            "validation images": None if held_out is None else digest(held_out),
            **{name: value for name, value in config.flat().items() if name not in MAY_DIFFER},
            "settings of the method": settings_of(method),
            "device": device.type,
            "precision": str(precision),
            "rankshot": __version__,
            "torch": torch.__version__,
        }
    )


def settings_of(method: Method) -> list[Any]:
    """Of the method and of all within it, its loss before all: the numbers and words that they hold."""
    plain = (bool, int, float, str)
    return [
        [type(part).__name__, {name: value for name, value in vars(part).items() if isinstance(value, plain)}]
        for part in method.modules()
    ]


def digest(images: ImageSet) -> str:
    """Of the classes, the labels, and as many images as can be read in a moment, evenly chosen."""
    about: list[Any] = [images.classes, images.images.shape]
    found = hashlib.sha256(json.dumps(about).encode())
    found.update(np.ascontiguousarray(images.labels).tobytes())
    found.update(np.ascontiguousarray(images.images[:: max(1, images.images.nbytes // HASHED)]).tobytes())
    return found.hexdigest()[:16]
