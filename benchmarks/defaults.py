"""The settings that `RankingLoss` begins with, beside Smooth-AP's: short runs, judged by validation classes alone.

`python -m benchmarks.defaults --jobs 9 --grocery FOLDER` on a GPU writes one json a run below results/defaults. Every
setting of `RankingLoss` meets every temperature of Smooth-AP with the same network, images, augmentation, rates and seeds.
The network that a run keeps is measured once more, by other episodes than those it was chosen by. `--table` prints means.

Omniglot, mini-ImageNet and CUB must be prepared (`rankshot data prepare`); grocery is a folder with train, val and test.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from rankshot.data import prepared
from rankshot.reproduce.job import Run
from rankshot.reproduce.run_all import run_all
from rankshot.training import TrainConfig

from .places import ROOT
from .tables.defaults import measured

RESULTS = ROOT / "results"
FOLDER = "defaults"
SEEDS = (0, 1, 2)
AUGMENT = ("flip", "crop", "jitter")


def ours(epsilon: float = 0.001, smoothing: float = 0.01, coarse_weight: float = 0.0, **more: Any) -> dict[str, Any]:
    settings = {"epsilon": epsilon, "smoothing": smoothing, "coarse_weight": coarse_weight, **more}
    return {"method": "map-dlm", "alpha": 1.0, **settings}


def smooth_ap(temperature: float) -> dict[str, Any]:
    return {"method": "smooth-ap", "temperature": temperature}


OURS = {
    "coarse-0.03": ours(coarse_weight=0.03),
    "coarse-0.1": ours(coarse_weight=0.1),
    "coarse-0.3": ours(coarse_weight=0.3),
    "wider-0.1": ours(epsilon=0.003, smoothing=0.02, coarse_weight=0.1),
}
WIDEST = {"widest-0.1": ours(epsilon=0.005, smoothing=0.04, coarse_weight=0.1)}
# Where classes are few, a coarse scale that never ends may teach a network its training classes by heart.
GENTLER = {
    "wider-0": ours(epsilon=0.003, smoothing=0.02),
    "wider-0.03": ours(epsilon=0.003, smoothing=0.02, coarse_weight=0.03),
    "wider-0.3-alpha-1": ours(epsilon=0.003, smoothing=0.02, coarse_weight=0.3, coarse_alpha=1.0),
    "wider-1-alpha-1": ours(epsilon=0.003, smoothing=0.02, coarse_weight=1.0, coarse_alpha=1.0),
}
BOTH_SIGNS = {"both-0.1": {**OURS["wider-0.1"], "sign": 0}}
SMOOTH_AP = {f"smooth-ap-{temperature}": smooth_ap(temperature) for temperature in (0.005, 0.01, 0.02)}
SOFTER = {"smooth-ap-0.05": smooth_ap(0.05)}
FOR_LONGER = range(3, 9)  # more seeds, where ten validation classes leave much to chance
CONV4: dict[str, dict[str, Any]] = {
    "glyphs": {"updates": 800},
    "grocery": {"updates": 1500, "augment": AUGMENT},
    "omniglot": {"updates": 3000, "rotations": True},
    "cub": {"updates": 2000, "augment": AUGMENT},
    "mini-imagenet": {"updates": 3000, "augment": ("flip",)},
}
EFFICIENTNET: dict[str, dict[str, Any]] = {
    "grocery-160": {"updates": 300, "augment": AUGMENT},
    "cub-whole": {"updates": 500, "augment": AUGMENT},
}
# Fine-tuning of Conv4: by the recipe that its weights were made by, and by what a run from nothing begins with.
FINE_TUNED: dict[str, dict[str, Any]] = {
    "recipe": {
        **ours(epsilon=0.003, smoothing=0.0, coarse_weight=1.0),
        "augment": ("flip",),
        "mirror": True,
    },
    "recipe-all-augment": {
        **ours(epsilon=0.003, smoothing=0.02, coarse_weight=0.1),
        "augment": AUGMENT,
        "mirror": True,
    },
    "usual": ours(epsilon=0.003, smoothing=0.02, coarse_weight=0.1),
}


def plan(network: str) -> Iterator[tuple[str, str, dict[str, Any], float, int]]:
    """Data set, label, settings, learning rate and seed of every run, in the order in which they are worth having."""
    if network == "conv4":
        for seed, rate in product(SEEDS, (0.001, 0.003)):
            for data, (label, loss) in product(CONV4, {**OURS, **SMOOTH_AP, **(WIDEST if rate == 0.003 else {})}.items()):
                yield data, label, {**CONV4[data], **loss}, rate, seed
        for seed, (label, loss) in product(FOR_LONGER, {**OURS, **WIDEST, **SMOOTH_AP}.items()):
            if label not in ("coarse-0.03", "coarse-0.3"):
                yield "grocery", label, {**CONV4["grocery"], **loss}, 0.003, seed
        for seed, (label, loss) in product(range(6), GENTLER.items()):
            yield "grocery", label, {**CONV4["grocery"], **loss}, 0.003, seed
        for seed, data, (label, loss) in product(SEEDS, CONV4, GENTLER.items()):
            if data != "grocery":
                yield data, label, {**CONV4[data], **loss}, 0.003, seed
        for seed, data, (label, loss) in product(SEEDS, CONV4, BOTH_SIGNS.items()):
            yield data, label, {**CONV4[data], **loss}, 0.003, seed
    elif network == "conv4-mini-imagenet":
        for seed, rate, (label, settings) in product(SEEDS, (0.0003, 0.001), FINE_TUNED.items()):
            yield "grocery", label, {"updates": 800, "init": network, **settings}, rate, seed
    else:
        start = {"network": network, "init": network}
        compared = {name: {**OURS, **SMOOTH_AP}[name] for name in ("wider-0.1", "smooth-ap-0.01", "smooth-ap-0.02")}
        for losses in (compared, GENTLER, {**WIDEST, **SOFTER}):
            for seed, data, (label, loss) in product(SEEDS, EFFICIENTNET, losses.items()):
                yield data, label, {**EFFICIENTNET[data], **loss, **start}, 0.0003, seed


def runs(network: str, names: dict[str, str], root: str | None) -> Iterator[Run]:
    """Those of a network; `names` are those of the prepared data."""
    for data, label, settings, rate, seed in plan(network):
        updates = settings["updates"]
        watched = {"validate_every": updates // 10, "validation_episodes": 200}
        config = TrainConfig.of(
            **{**settings, **watched, "log_every": updates, "checkpoint_every": updates},
            data=names[data],
            root=root,
            learning_rate=rate,
            schedule="cosine",
            seed=seed,
        )
        yield Run(f"{FOLDER}/{network}/{data}/{label}-rate-{rate}/{seed}", config, None)


def data_names(network: str, root: str | None, grocery: Path) -> dict[str, str]:
    """Name here -> name of what was prepared."""
    if network == "conv4-mini-imagenet":
        return {"grocery": prepared(str(grocery), root).name}
    if network == "conv4":
        return {name: prepared(name, root).name if name != "glyphs" else name for name in CONV4 if name != "grocery"} | {
            "grocery": prepared(str(grocery), root).name
        }
    return {
        "grocery-160": prepared(str(grocery), root, size=160, fit="crop").name,
        "cub-whole": prepared("cub", root, crop=False, size=144).name,
    }


def table(results: Path) -> Iterator[str]:
    """A line a setting: mean and deviation over seeds, the best first."""
    for (network, data), labels in measured(results).items():
        yield f"{network} {data}"
        for label, values in sorted(labels.items(), key=lambda item: -statistics.mean(item[1])):
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            yield f"  {label:32} {statistics.mean(values):6.2f} ± {deviation:.2f}  ({len(values)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="conv4")
    parser.add_argument("--grocery", type=Path)
    parser.add_argument("--root")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("runs/defaults"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", default="*")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        names = data_names(options.network, options.root, options.grocery)
        chosen = [run for run in runs(options.network, names, options.root) if fnmatch.fnmatch(run.name, options.only)]
        left = run_all(chosen, options.results, options.runs, jobs=options.jobs, seconds=options.seconds)
        print(f"{len(chosen) - len(left)} of {len(chosen)} runs are done")
    print("\n".join(table(options.results)))


if __name__ == "__main__":
    main()
