"""What torch.compile gains where an update is a long loop: `python -m benchmarks.loops`.

The systems with such loops, on images of noise; with the batches of their presets on a GPU, and small ones on a CPU. Into
results/benchmarks/loops-cpu.json, or loops-cuda.json.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

import torch

from rankshot.files import write_whole
from rankshot.hardware import circumstances
from rankshot.methods import settings_for
from rankshot.training import TrainConfig

from .places import FOLDER
from .rates import noise, updates_a_second

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


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {**circumstances(SEED), "updates": UPDATES[device]}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for method, (preset, channels, width) in SYSTEMS[device].items():
        settings = SMALL if preset is None else settings_for(method, preset)
        config = TrainConfig.of(**{**settings, "method": method, "updates": UPDATES[device], "validate_every": 0})
        ways = {"plain": config, "compiled": config.changed(compile=True)}
        rates = updates_a_second(ways, noise(CLASSES, PER_CLASS, channels, width, SEED), ROUNDS)
        ratio = statistics.median(rates["compiled"]) / statistics.median(rates["plain"])
        results[method] = {"preset": preset, "updates_a_second": rates, "ratio": ratio}
        print(method, results[method], flush=True)
        write_whole(FOLDER / f"loops-{device}.json", json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
