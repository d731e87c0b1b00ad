"""How long importing rankshot takes, beside importing torch alone: `python -m benchmarks.importing`.

Each import is a process of its own, and they take turns. Writes results/benchmarks/importing.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from rankshot.hardware import circumstances

from .places import FOLDER

ROUNDS = 5
IMPORTS = {
    "torch": "torch",
    "rankshot": "torch, rankshot",
    "losses": "torch, rankshot.losses, rankshot.ranking, rankshot.models",
    "everything": "torch, rankshot.gallery, rankshot.training, rankshot.fewshot, rankshot.adaptation",
}
TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for number in range(ROUNDS + 1):
        for name, what in IMPORTS.items():
            done = subprocess.run([sys.executable, "-c", TIMED.format(what)], capture_output=True, text=True, check=True)
            if number:  # the first round fills the caches
                seconds[name].append(float(done.stdout))
    medians = {name: statistics.median(every) for name, every in seconds.items()}
    results = {**circumstances(0), "rounds": ROUNDS, "seconds": medians, "all": seconds}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "importing.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(medians, indent=1))


if __name__ == "__main__":
    main()
