"""Updates per second of whole runs, which take turns, on images of noise."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rankshot.data import ImageSet
from rankshot.training import Callback, TrainConfig, train


def noise(classes: int, per_class: int, channels: int, width: int, seed: int) -> ImageSet:
    shape = (classes * per_class, channels, width, width)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return ImageSet(pixels, np.arange(len(pixels)) // per_class, tuple(map(str, range(classes))))


def updates_a_second(ways: Mapping[str, TrainConfig], images: ImageSet, rounds: int) -> dict[str, list[float]]:
    """Of each run, round by round."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for way, config in ways.items():
                status = train(config, Path(folder) / f"{way}-{number}", train_set=images, progress=Callback())
                rates[way].append(status.update / status.seconds)
                print(way, f"{rates[way][-1]:.1f} updates a second", flush=True)
    return rates
