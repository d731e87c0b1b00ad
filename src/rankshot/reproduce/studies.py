"""Studies beyond the paper on mini-ImageNet. All but the last change one thing of the paper's recipe for mAP-DLM.

mini-imagenet/gap/NAME/SEED            where the paper's figures come from (gap.py)
mini-imagenet/objectives/NAME/0        every metric as the objective, judged by every metric
mini-imagenet/signs/NAME/SEED          the positive update, the negative one, and both at once
mini-imagenet/batches/NAME/0           128 images of fewer or more classes, and of classes that are near each other
mini-imagenet/longer/METHOD/SEED       our recipe of then with crops, and mAP-DLM for longer
mini-imagenet/decay/METHOD-NAME/0      our recipe of then with a centred head and weight decay: what our recipe has now
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .gap import DATA, gap
from .job import Run
from .plan import BEFORE, BENCHMARKS, DECAY, OF_PHOTOGRAPHS, RUNNING, decayed
from .plan import SEEDS as PLAN_SEEDS

Variants = dict[str, tuple[str, dict[str, Any]]]  # name -> what it is, in words, and its settings

METRICS = {"ap": "AP", "ndcg": "NDCG", "auc": "AUC", "rr": "reciprocal rank", "precision@5": "precision@5"}
FINE: dict[str, Any] = {"epsilon": 0.003, "alpha": 1.0}
JUDGED = replace(RUNNING, retrieval_metrics=tuple(METRICS))
OBJECTIVES: Variants = {
    f"{metric}{suffix}": (f"{title}, {how}", {"metric": metric, **settings})
    for suffix, how, settings in (("", "alpha 10, epsilon 1", {}), ("-fine", "alpha 1, epsilon 0.003", FINE))
    for metric, title in METRICS.items()
}
SIGNS: Variants = {
    "positive": ("positive, alpha 10, epsilon 1", {}),  # what changes nothing is a row of the table
    "negative-1": ("negative, alpha 1, epsilon 1", {"sign": -1, "alpha": 1.0}),
    "negative-0.1": ("negative, alpha 1, epsilon 0.1", {"sign": -1, "alpha": 1.0, "epsilon": 0.1}),
    "both": ("the mean of both, epsilon 1", {"sign": 0}),
}
# What is near is known by weights that have learned these very classes.
NEAR: dict[str, Any] = {"batch_similar_by": "conv4-mini-imagenet"}
BATCHES: Variants = {
    "8-classes": ("8 classes", {}),
    "4-classes": ("4 classes", {"batch_classes": 4}),
    "16-classes": ("16 classes", {"batch_classes": 16}),
    "32-classes": ("32 classes", {"batch_classes": 32}),
    "8-classes-half-near": ("8 classes, half of them near the first", {"batch_similar": 0.5, **NEAR}),
    "8-classes-near": ("8 classes, all of them near the first", {"batch_similar": 1.0, **NEAR}),
}
SEEDS = (0, 1)  # of the signs
# The best of `trials.ONE_AT_A_TIME` by the validation classes.
LONGER: dict[str, dict[str, Any]] = {
    "map-dlm": {**BEFORE, "augment": ("flip", "crop"), "learning_rate": 0.002, "updates": 44_000},
    "smooth-ap": {**BEFORE, "augment": ("flip", "crop")},
}
JITTER: dict[str, Any] = {"augment": ("flip", "jitter")}
ALL_DECAYS: Variants = {
    "before": ("our recipe of then", BEFORE),
    "centred": ("centred head", {**BEFORE, "head": "centred"}),
    "decay-0.1": ("centred head, weight decay 0.1", decayed(0.1)),
    "decay-0.3": ("centred head, weight decay 0.3", decayed(0.3)),
    "decay-0.1-jitter": ("centred head, weight decay 0.1, colours", {**decayed(0.1), **JITTER}),
    "decay-0.3-jitter": ("centred head, weight decay 0.3, colours", {**decayed(0.3), **JITTER}),
    "decay-0.1-rate-0.002": ("centred head, weight decay 0.1, rate 0.002", {**decayed(0.1), "learning_rate": 0.002}),
}
FEW_DECAYS = {name: ALL_DECAYS[name] for name in ("centred", "decay-0.1")}
SECOND = ("map-dlm", "decay-0.3-jitter")  # run with all seeds before it was known whether it would be first
DECAYS = {"map-dlm": ALL_DECAYS, "smooth-ap": ALL_DECAYS, "map-ssvm": FEW_DECAYS, "siamese": FEW_DECAYS}


def studies(name: str) -> list[Run]:
    """All of them, in the order in which they are worth having."""
    return [*gap(), *objectives(), *signs(), *batches(), *longer(), *decays()] if name == DATA else []


def objectives() -> list[Run]:
    return _runs("objectives", OBJECTIVES, (0,), JUDGED)


def signs() -> list[Run]:
    return _runs("signs", SIGNS, SEEDS)


def batches() -> list[Run]:
    return _runs("batches", BATCHES, (0,))


def longer() -> list[Run]:
    config = BENCHMARKS[DATA].config
    return [
        Run(f"{DATA}/longer/{method}/{seed}", config("best", method, seed, **settings), OF_PHOTOGRAPHS)
        for seed in PLAN_SEEDS
        for method, settings in LONGER.items()
    ]


def decays() -> list[Run]:
    """But for what is a row of the table itself: see `decay_folder`."""
    config = BENCHMARKS[DATA].config
    return [
        Run(f"{decay_folder(method, name)}/{seed}", config("best", method, seed, **settings), RUNNING)
        for method, variants in DECAYS.items()
        for name, (_, settings) in variants.items()
        if decay_folder(method, name).startswith(f"{DATA}/decay/")
        for seed in (PLAN_SEEDS if (method, name) == SECOND else PLAN_SEEDS[:1])
    ]


def decay_folder(method: str, name: str) -> str:
    """Where the runs of a variant are; the best by the validation classes became our recipe."""
    is_ours = DECAYS[method][name][1] == DECAY[method]
    return f"{DATA}/best/{method}" if is_ours else f"{DATA}/decay/{method}-{name}"


def _runs(study: str, variants: Variants, seeds: Sequence[int], questions: Any = RUNNING) -> list[Run]:
    config = BENCHMARKS[DATA].config
    return [
        Run(
            f"{DATA}/{study}/{name}/{seed}",
            config("paper", "map-dlm", seed, **settings),
            questions,
        )
        for seed in seeds
        for name, (_, settings) in variants.items()
        if settings or study == "objectives"  # which is judged by more than the row is
    ]
