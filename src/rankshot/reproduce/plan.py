"""Which runs make up the paper's tables and figures, in the order in which they are worth having."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rankshot.training import TrainConfig

from .job import Questions, Run

METHODS = ("map-dlm", "map-ssvm", "siamese", "smooth-ap")
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Benchmark:
    """One data set of the paper.

    base       what all its runs share
    questions  the tasks of its table
    paper      method -> settings that the paper's recipe adds
    best       method -> settings of our recipe, chosen on validation classes (docs/experiments.md)
    """

    base: TrainConfig
    questions: Questions
    paper: dict[str, dict[str, Any]]
    best: dict[str, dict[str, Any]]

    def config(self, recipe: str, method: str, seed: int = 0, **settings: Any) -> TrainConfig:
        return replace(self.base, method=method, seed=seed, **{**getattr(self, recipe)[method], **settings})


# The paper does not give CUB's settings: those of mini-ImageNet are taken. Smooth-AP is not in the paper: it takes what
# the mAP methods take, with its own paper's temperature.
_PHOTOGRAPHS: dict[str, dict[str, Any]] = {
    "map-dlm": {"schedule": "step", "updates": 22_000},
    "map-ssvm": {"schedule": "step", "updates": 22_000},
    "siamese": {"schedule": "step", "updates": 24_000, "learning_rate": 0.01},
    "smooth-ap": {"schedule": "step", "updates": 22_000},
}
BENCHMARKS = {
    "omniglot": Benchmark(
        TrainConfig(
            data="omniglot", rotations=True, batch_classes=16, log_every=200, checkpoint_every=2000, updates=18_000
        ),
        Questions(episodes=1000),
        paper={method: {"split": "trainval", "validate_every": 0} for method in METHODS},
        best={},
    ),
    "mini-imagenet": Benchmark(
        TrainConfig(
            data="mini-imagenet",
            batch_classes=8,
            validate_every=500,
            validation_ways=(5, 16),
            log_every=200,
            checkpoint_every=2000,
        ),
        Questions(episodes=600),
        paper=_PHOTOGRAPHS,
        best={},
    ),
    "cub": Benchmark(
        TrainConfig(data="cub", batch_classes=8, validate_every=500, log_every=200, checkpoint_every=2000),
        Questions(episodes=1000),
        paper=_PHOTOGRAPHS,
        best={},
    ),
}


def rows(name: str, recipe: str) -> list[Run]:
    """A table's rows, seed by seed: one of each first, so that a table is there early."""
    benchmark = BENCHMARKS[name]
    return [
        Run(f"{name}/{recipe}/{method}/{seed}", benchmark.config(recipe, method, seed), benchmark.questions)
        for seed in SEEDS
        for method in getattr(benchmark, recipe)
    ]
