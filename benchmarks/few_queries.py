"""MAML asked as its authors' code asks it: `python -m benchmarks.few_queries RUNS [ROOT]`.

There an episode has as many queries of a class as labelled images, and all of them are normalised together. So the answer
to a query depends on the others, and each class has the same number of them. Our episodes have 20 images of a class. RUNS
has the folders of the runs of the table of all systems, as `rankshot reproduce DATA --systems` makes them below
runs/reproduce. Into results/benchmarks/few-queries.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rankshot.fewshot import Classification, evaluate, summary
from rankshot.files import write_whole
from rankshot.hardware import circumstances
from rankshot.models import from_pretrained
from rankshot.reproduce.systems import config_of, presets
from rankshot.training import TrainConfig
from rankshot.training.assembly import load

from .places import FOLDER

PLACE = FOLDER / "few-queries.json"
EPISODES, SEED = 2000, 100
DATA = ("omniglot", "mini-imagenet")


def task_of(config: TrainConfig) -> Classification:
    """What a run is trained for, with the authors' number of queries."""
    shot = config.method.settings["shot"]
    return Classification(config.batch.classes, shot, per_class=2 * shot)


def main(runs: str, root: str | None = None) -> None:
    found: dict[str, dict[str, Any]] = {}
    asked = {f"{name}/systems/{label}/0": (name, label) for name in DATA for label in presets(name, "maml")}
    models = {run: from_pretrained(Path(runs) / run) for run in asked}  # all of them are there, or nothing is measured
    for run, (name, label) in asked.items():
        config = config_of(name, "maml", label).changed(root=root)
        results = evaluate(models[run], load(config, "test"), [task_of(config)], EPISODES, SEED)
        found[run] = summary(results)
        print(run, *results, flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_whole(PLACE, json.dumps({**circumstances(SEED), "episodes": EPISODES, "runs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
