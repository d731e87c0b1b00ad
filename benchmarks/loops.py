"""What torch.compile gains where an update is a long loop: `python -m benchmarks.loops`.

The systems with such loops, on images of noise; with the batches of their presets on a GPU, and small ones on a CPU. Into
results/benchmarks/loops-cpu.json, or loops-cuda.json.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rankshot.data import ImageSet
from rankshot.hardware import circumstances
from rankshot.methods import settings_for
from rankshot.training import Callback, TrainConfig, train

from .places import FOLDER

SEED, CLASSES, PER_CLASS, ROUNDS = 0, 100, 20, 3
UPDATES = {"cpu": 20, "cuda": 300}
# system -> preset, channels, pixels of a side
SYSTEMS: dict[str, dict[str, tuple[str | None, int, int]]] = {
    "cpu": dict.fromkeys(("memory", "meta-lstm", "arc"), (None, 1, 28)),
    "cuda": {
        "memory": ("omniglot", 1, 28),
        "meta-lstm": ("mini-imagenet", 3, 84),
        "arc": ("omniglot", 1, 28),
    },
}
SMALL: dict[str, Any] = {"batch_classes": 5, "batch_size": 80}


def noise(channels: int, width: int) -> ImageSet:
    shape = (CLASSES * PER_CLASS, channels, width, width)
    pixels = np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)
    return ImageSet(pixels, np.arange(len(pixels)) // PER_CLASS, tuple(map(str, range(CLASSES))))


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {**circumstances(SEED), "updates": UPDATES[device]}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for method, (preset, channels, width) in SYSTEMS[device].items():
        settings = SMALL if preset is None else settings_for(method, preset)
        config = TrainConfig.of(**{**settings, "method": method, "updates": UPDATES[device], "validate_every": 0})
        images = noise(channels, width)
        rates: dict[str, list[float]] = {"plain": [], "compiled": []}
        with tempfile.TemporaryDirectory() as folder:
            for number in range(ROUNDS):
                for way, of_this_way in rates.items():
                    to = Path(folder) / f"{way}-{number}"
                    status = train(config.changed(compile=way == "compiled"), to, train_set=images, progress=Callback())
                    of_this_way.append(status.update / status.seconds)
        ratio = statistics.median(rates["compiled"]) / statistics.median(rates["plain"])
        results[method] = {"preset": preset, "updates_a_second": rates, "ratio": ratio}
        print(method, results[method], flush=True)
        (FOLDER / f"loops-{device}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
