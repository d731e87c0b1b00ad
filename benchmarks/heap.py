"""Training on a CPU with the memory that it frees given back to the system at once, as glibc does by itself, and kept.

`python -m benchmarks.heap` writes results/benchmarks/heap.json. Each is a process of its own, and they take turns.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time

from rankshot.hardware import circumstances
from rankshot.training import TrainConfig
from rankshot.training.keep_memory import keep_freed_memory

from .measure import in_a_process
from .places import FOLDER
from .training import SEED, bare_step

ROUNDS, WARM, UPDATES = 5, 5, 40
WAYS = ("given_back", "kept")


def measured() -> dict[str, float]:
    """A bare step, by itself."""
    step = bare_step(TrainConfig())
    for _ in range(WARM):
        step()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for _ in range(UPDATES):
        step()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds_an_update": seconds / UPDATES,
        "faults_an_update": (after.ru_minflt - before.ru_minflt) / UPDATES,
        "peak_bytes": after.ru_maxrss * 1024,
    }


def main() -> None:
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, measured in rounds.items():
            measured.append(json.loads(in_a_process("benchmarks.heap", way)))
            print(way, measured[-1], flush=True)
    medians = {
        way: {name: statistics.median(one[name] for one in measured) for name in measured[0]}
        for way, measured in rounds.items()
    }
    results = {**circumstances(SEED), "all": rounds, **medians}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "heap.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU has its own heap
    if WAYS[-1] in sys.argv and not keep_freed_memory():
        raise SystemExit("this C library cannot be told to keep memory")
    if len(sys.argv) > 1:
        print(json.dumps(measured()))
    else:
        main()
