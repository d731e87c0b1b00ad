"""What an update costs by every system, in the same loop on the same images: `python -m benchmarks.systems`.

Each with the batch that it learns glyphs from by default. Writes results/benchmarks/systems-cpu.json, or systems-cuda.json.
"""

from __future__ import annotations

import json
import statistics

import torch

from rankshot.hardware import circumstances
from rankshot.methods import METHODS, settings_for
from rankshot.training import TrainConfig
from rankshot.training.keep_memory import keep_freed_memory

from .places import FOLDER
from .speed import ALONE, seconds_of

SEED = 0
UPDATES, ROUNDS = {"cpu": 8, "cuda": 500}, {"cpu": 9, "cuda": 3}  # other work on a CPU disturbs single rounds


def main() -> None:
    keep_freed_memory()  # as `rankshot train` does
    device = "cuda" if torch.cuda.is_available() else "cpu"
    updates = UPDATES[device]
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    configs = {name: TrainConfig.of(**{**ALONE, "updates": updates, **settings_for(name)}) for name in METHODS}
    for _ in range(ROUNDS[device]):  # in turns, so that a noisy machine is noisy for all
        for name, config in configs.items():
            seconds[name].append(seconds_of(config)[1] / updates)
            print(f"{name}: {seconds[name][-1]:.4f} s", flush=True)
    results = circumstances(SEED) | {
        "updates": updates,
        "images": {name: config.batch.size for name, config in configs.items()},
        "seconds_an_update": {name: statistics.median(rounds) for name, rounds in seconds.items()},
        "all": seconds,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"systems-{device}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
