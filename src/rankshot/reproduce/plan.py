"""Which runs make up the paper's tables and figures, in the order in which they are worth having.

A run's name is its place below results/:

    DATA/paper/METHOD/SEED    rows of the tables with the paper's recipe
    DATA/best/METHOD/SEED     and with ours, chosen on validation classes (docs/experiments.md)
    DATA/curves/METHOD        learning curves, where the rows have none: Omniglot's learn from the validation classes too
    DATA/alpha/METHOD-ALPHA/SEED   other values of alpha
    DATA/batch/METHOD-SIZE    other batch sizes
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from rankshot.losses.ranking_loss import PAPER
from rankshot.training import TrainConfig

from .job import Questions, Run

METHODS = ("map-dlm", "map-ssvm", "siamese", "smooth-ap")
RECIPES = ("paper", "best")
SEEDS = (0, 1, 2)
ALPHAS = (1.0, 3.0, 10.0, 30.0)
BATCH_SIZES = (16, 32, 64, 128)
# Other episodes than those that validation draws. By batch statistics every one is embedded anew, which takes long, and of
# photographs longest.
QUESTIONS = Questions(episodes=10_000, seed=100, batch_episodes=500)
OF_PHOTOGRAPHS = replace(QUESTIONS, batch_episodes=200)
RUNNING = replace(QUESTIONS, batch_episodes=0)
CURVE: dict[str, Any] = {"split": "train", "validate_every": 500}

Settings = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Benchmark:
    """One data set of the paper.

    base       what all its runs share
    questions  the tasks of its table
    paper      method -> what the paper's recipe sets
    best       method -> what ours sets; a method that is not there has no row
    best_questions  the tasks of its rows
    """

    base: TrainConfig
    questions: Questions
    paper: Settings
    best: Settings = field(default_factory=dict)
    best_questions: Questions = QUESTIONS

    def config(self, recipe: str, method: str, seed: int = 0, **settings: Any) -> TrainConfig:
        return self.base.changed(method=method, seed=seed, **{**getattr(self, recipe)[method], **settings})


# The paper does not give CUB's settings: those of mini-ImageNet are taken. Smooth-AP is not in the paper: it takes what the
# mAP methods take, with the temperature of its own paper.
PHOTOGRAPHS: Settings = {
    "map-dlm": {"schedule": "step", "updates": 22_000, **PAPER},
    "map-ssvm": {"schedule": "step", "updates": 22_000, **PAPER},
    "siamese": {"schedule": "step", "updates": 24_000, "learning_rate": 0.01},
    "smooth-ap": {"schedule": "step", "updates": 22_000},
}
# Ours: the best of the trials, by the validation classes (docs/experiments.md).
OMNIGLOT: Settings = {
    "map-dlm": {
        "alpha": 1.0,
        "epsilon": 0.0006,
        "smoothing": 0.01,
        "coarse_weight": 0.3,
        "learning_rate": 0.004,
        "augment": ("crop",),
    },
    "map-ssvm": {"alpha": 2.0, "learning_rate": 0.004},
    "siamese": {"learning_rate": 0.03},
    "smooth-ap": {"temperature": 0.005, "learning_rate": 0.004, "augment": ("crop",)},
}
MINI_IMAGENET: Settings = {  # without what follows, it was our recipe before
    "map-dlm": {"alpha": 1.0, "epsilon": 0.003, "smoothing": 0.0, "coarse_weight": 1.0},
    "map-ssvm": {"alpha": 2.0},
    "siamese": {"learning_rate": 0.01},
    "smooth-ap": {"temperature": 0.01, "schedule": "step"},
}
BEFORE: dict[str, Any] = {"head": None, "optimiser": "adam", "weight_decay": 0.0}


def decayed(weight_decay: float) -> dict[str, Any]:
    """With a centred head, and weights that shrink."""
    return {"head": "centred", "optimiser": "adamw", "weight_decay": weight_decay}


DECAY = {"map-dlm": decayed(0.3), "map-ssvm": decayed(0.1), "siamese": decayed(0.1), "smooth-ap": decayed(0.3)}
CUB: Settings = {
    "map-dlm": {"alpha": 1.0, "epsilon": 0.003, "smoothing": 0.0, "coarse_weight": 1.0, "average": 0.999},
    "map-ssvm": {"alpha": 3.0},
    "siamese": {"learning_rate": 0.01},
    "smooth-ap": {"temperature": 0.007, "average": 0.999},
}
SHARED = TrainConfig.of(batch_size=128, log_every=200, checkpoint_every=2000)
BENCHMARKS = {
    "omniglot": Benchmark(
        SHARED.changed(data="omniglot", rotations=True, batch_classes=16, updates=18_000),
        QUESTIONS,
        paper={
            method: {"split": "trainval", "validate_every": 0, **(PAPER if method.startswith("map-") else {})}
            for method in METHODS
        },
        best={
            method: {"split": "trainval", "validate_every": 0, "schedule": "cosine", **chosen}
            for method, chosen in OMNIGLOT.items()
        },
    ),
    "mini-imagenet": Benchmark(
        SHARED.changed(
            data="mini-imagenet",
            batch_classes=8,
            validate_every=500,
            validation_ways=(5, 16),
            validation_shots=(1, 5),
        ),
        OF_PHOTOGRAPHS,
        paper=PHOTOGRAPHS,
        best={
            method: {
                "schedule": "cosine",
                "updates": 22_000,
                "augment": ("flip",),
                "mirror": True,
                **chosen,
                **DECAY[method],
            }
            for method, chosen in MINI_IMAGENET.items()
        },
        best_questions=RUNNING,
    ),
    "cub": Benchmark(
        SHARED.changed(data="cub", batch_classes=8, validate_every=500),
        OF_PHOTOGRAPHS,
        paper=PHOTOGRAPHS,
        best={
            method: {
                "schedule": "cosine",
                "updates": 8_000,
                "augment": ("flip", "crop", "jitter"),
                "mirror": True,
                **chosen,
            }
            for method, chosen in CUB.items()
        },
        best_questions=RUNNING,
    ),
}


def plan(name: str) -> list[Run]:
    """Everything for one data set: the rows first, then the studies."""
    return [*rows(name, "paper"), *rows(name, "best"), *curves(name), *alphas(name), *batch_sizes(name)]


def rows(name: str, recipe: str) -> list[Run]:
    """A table's rows, seed by seed: one of each first, so that a table is there early."""
    benchmark = BENCHMARKS[name]
    questions = benchmark.best_questions if recipe == "best" else benchmark.questions
    return [
        Run(f"{name}/{recipe}/{method}/{seed}", benchmark.config(recipe, method, seed), questions)
        for seed in SEEDS
        for method in getattr(benchmark, recipe)
    ]


def curves(name: str) -> list[Run]:
    """Runs that hold the validation classes out, where the rows learn from them."""
    benchmark = BENCHMARKS[name]
    return [
        Run(f"{name}/curves/{method}", benchmark.config("paper", method, **CURVE), None)
        for method in benchmark.paper
        if benchmark.config("paper", method).data.split == "trainval"
    ]


def alphas(name: str) -> list[Run]:
    """Both methods with other values of alpha, for the figures; with 1, three seeds, for mini-ImageNet's table.

    Alpha 10 is the paper's recipe: it is among the rows, or the curves.
    """
    if name == "cub":
        return []
    benchmark = BENCHMARKS[name]
    methods = ("map-dlm", "map-ssvm")
    one_seed = [(method, alpha, 0) for method in methods for alpha in ALPHAS if alpha != 10]
    more = [(method, 1.0, seed) for seed in SEEDS for method in methods] if name == "mini-imagenet" else []
    settings = CURVE if name == "omniglot" else {}
    return [
        Run(
            f"{name}/alpha/{method}-{alpha:g}/{seed}",
            benchmark.config("paper", method, seed, alpha=alpha, **settings),
            benchmark.best_questions,
        )
        for method, alpha, seed in dict.fromkeys([*more, *one_seed])
    ]


def batch_sizes(name: str) -> list[Run]:
    """The paper's learning-efficiency study, of every method: the same 8 classes in smaller batches.

    The largest is among the rows.
    """
    if name != "mini-imagenet":
        return []
    return [
        Run(batch_run(method, size), BENCHMARKS[name].config("paper", method, batch_size=size), None)
        for size in BATCH_SIZES[:-1]
        for method in METHODS
    ]


def batch_run(method: str, size: int) -> str:
    """What the run with batches of this size is called."""
    return f"mini-imagenet/paper/{method}/0" if size == BATCH_SIZES[-1] else f"mini-imagenet/batch/{method}-{size}"
