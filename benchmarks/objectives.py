"""What the two scales of `RankingLoss()` cost beside the paper's objective: `python -m benchmarks.objectives`.

Forward and backward, interleaved, 8 images a class; into results/benchmarks/objectives.json. Other benchmarks of the loss
measure the paper's objective, which ranks every query once; this one ranks it five times.
"""

from __future__ import annotations

import json
from typing import Any

from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss

from .measure import interleaved
from .places import FOLDER
from .run import SEED, step_of

SIZES, REGIME, ROUNDS = (128, 512, 2048), "8 a class", 11


def main() -> None:
    results: dict[str, Any] = {**circumstances(SEED), "loss": repr(RankingLoss()), "regime": REGIME, "ratios": {}}
    for size in SIZES:
        losses = {"paper": RankingLoss.paper(), "two_scales": RankingLoss()}
        seconds = interleaved({name: step_of(loss, size, REGIME) for name, loss in losses.items()}, ROUNDS)
        results["ratios"][str(size)] = {
            **{f"{name}_ms": 1e3 * value for name, value in seconds.items()},
            "ratio": seconds["two_scales"] / seconds["paper"],
        }
        print(size, results["ratios"][str(size)], flush=True)
    (FOLDER / "objectives.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
