"""How fast the paper's runs are on this machine: whole ones in a single process, and every method in the same loop.

`python -m benchmarks.speed [ROOT]` writes results/benchmarks/speed.json; Omniglot and mini-ImageNet must be prepared.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rankshot.hardware import circumstances
from rankshot.reproduce.plan import BENCHMARKS, METHODS
from rankshot.training import Callback, TrainConfig, train

from .places import FOLDER

SEED, ROUNDS, UPDATES = 0, 2, 1000
ALONE = {"validate_every": 0, "checkpoint_every": 10**6, "log_every": 500}


def seconds_of(config: TrainConfig) -> tuple[float, float]:
    """Of the whole call, from opening the data to the last file written; and of its updates alone."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        status = train(config, Path(folder) / "run", progress=Callback())
        return time.perf_counter() - start, status.seconds


def main() -> None:
    root = sys.argv[1] if len(sys.argv) > 1 else None
    results: dict[str, object] = circumstances(SEED)
    for name in ("omniglot", "mini-imagenet"):
        configs = {method: BENCHMARKS[name].config("paper", method, SEED, root=root, **ALONE) for method in METHODS}
        whole = configs["map-dlm"]
        seconds, training = seconds_of(whole)
        rates: dict[str, list[float]] = {method: [] for method in METHODS}
        for _ in range(ROUNDS):  # in turns, so that a noisy machine is noisy for all
            for method, config in configs.items():
                rates[method].append(UPDATES / seconds_of(config.changed(updates=UPDATES))[1])
        results[name] = {
            "whole_run": {"updates": whole.run.updates, "seconds": seconds, "training_seconds": training},
            "updates_per_second": {method: statistics.median(rounds) for method, rounds in rates.items()},
            "all": rates,
        }
        print(json.dumps({name: results[name]}, indent=1), flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "speed.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
