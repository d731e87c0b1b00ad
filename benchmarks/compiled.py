"""An update by torch.compile beside one without: `python -m benchmarks.compiled` on a GPU.

ResNet-12 on 128 random images of 84x84, mAP-DLM, bfloat16; both as CUDA graphs and without. Into
results/benchmarks/compiled.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from rankshot.hardware import circumstances
from rankshot.training import TrainConfig

from .places import FOLDER
from .rates import noise, updates_a_second

SEED, CLASSES, PER_CLASS, UPDATES = 0, 32, 20, 300
WAYS = {
    "plain": {"cuda_graph": False},
    "CUDA graph": {},
    "compiled": {"compile": True, "cuda_graph": False},
    "compiled, CUDA graph": {"compile": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER / "compiled.json")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    config = TrainConfig.of(network="resnet12", updates=UPDATES, validate_every=0, seed=SEED)
    ways = {way: config.changed(**settings) for way, settings in WAYS.items()}
    rates = updates_a_second(ways, noise(CLASSES, PER_CLASS, 3, 84, SEED), options.rounds)
    medians = {way: statistics.median(values) for way, values in rates.items()}
    ratios = {way: median / medians["plain"] for way, median in medians.items()}
    results = {**circumstances(SEED), "updates": UPDATES, "updates_a_second": rates, "of_plain": ratios}
    print(ratios)
    options.to.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
