"""Studies beyond the paper. The first four change one thing of the paper's recipe, or several, the next two of a system's
preset.

mini-imagenet/gap/NAME/SEED            where the paper's figures come from (gap.py)
DATA/objectives/NAME/SEED              every metric as the objective, judged by every metric
DATA/signs/NAME/SEED                   the positive update, the negative one, and both at once
DATA/batches/NAME/SEED                 128 images of fewer or more classes, and of classes that are near each other
DATA/maml/NAME/SEED                    MAML without something that its authors' code has (system_settings.py)
mini-imagenet/prototypical/NAME/SEED   Prototypical Networks with other settings (system_settings.py)
mini-imagenet/longer/METHOD/SEED       our earlier recipe with crops, and mAP-DLM for longer
mini-imagenet/decay/METHOD-NAME/SEED   our earlier recipe with a centred head and weight decay: what our recipe has now

Objectives, signs and batches are studied with mAP-DLM, on mini-ImageNet and on Omniglot. On Omniglot the runs are short:
two cores make those of a seed in about an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .gap import DATA, gap
from .job import Run
from .plan import BEFORE, BENCHMARKS, DECAY, OF_PHOTOGRAPHS, RUNNING, decayed
from .plan import SEEDS as PLAN_SEEDS
from .published import COLUMNS
from .system_settings import Variants, setting_runs

METRICS = {"ap": "AP", "ndcg": "NDCG", "auc": "AUC", "rr": "reciprocal rank", "precision@5": "precision@5"}
FINE: dict[str, Any] = {"epsilon": 0.003, "alpha": 1.0}
FINE_IN_WORDS = f"alpha {FINE['alpha']:g}, epsilon {FINE['epsilon']:g}"
JUDGED = replace(RUNNING, retrieval_metrics=tuple(METRICS))
OBJECTIVES: Variants = {
    f"{metric}{suffix}": (f"{title}, {how}", {"metric": metric, **settings})
    for suffix, how, settings in (("", "alpha 10, epsilon 1", {}), ("-fine", FINE_IN_WORDS, FINE))
    for metric, title in METRICS.items()
}
SIGNS: Variants = {
    "positive": ("positive, alpha 10, epsilon 1", {}),  # what changes nothing is a row of the table
    "negative-1": ("negative, alpha 1, epsilon 1", {"sign": -1, "alpha": 1.0}),
    "negative-0.1": ("negative, alpha 1, epsilon 0.1", {"sign": -1, "alpha": 1.0, "epsilon": 0.1}),
    "both": ("the mean of both, alpha 10, epsilon 1", {"sign": 0}),
    "positive-0.003": (f"positive, {FINE_IN_WORDS}", FINE),
    "negative-0.003": (f"negative, {FINE_IN_WORDS}", {"sign": -1, **FINE}),
    "both-0.003": (f"the mean of both, {FINE_IN_WORDS}", {"sign": 0, **FINE}),
}


@dataclass(frozen=True)
class Studied:
    """How objectives, signs and batches are studied on a data set.

    classes     of a batch: those of the paper's recipe, then others
    near_by     weights by which near classes are found; they have learned these very classes
    unchanged   where the runs are that change nothing
    changes     what all runs change of the paper's recipe
    seeds       of every variant
    """

    classes: tuple[int, ...]
    near_by: str
    unchanged: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)

    def variants(self, study: str) -> Variants:
        return {"objectives": OBJECTIVES, "signs": SIGNS}.get(study) or self.batches()

    def base_of(self, study: str, variant: str) -> str:
        """What a variant is compared with: the one that changes nothing, or nothing but alpha and epsilon as it does."""
        variants = self.variants(study)
        base = FINE if FINE.items() <= variants[variant][1].items() else {}
        return next(name for name, (_, settings) in variants.items() if settings == base)

    def batches(self) -> Variants:
        usual, *others = self.classes
        near = {
            f"{usual}-classes{suffix}": (
                f"{usual} classes, {part} of them near the first",
                {"batch_similar": share, "batch_similar_by": self.near_by},
            )
            for suffix, part, share in (("-half-near", "half", 0.5), ("-near", "all", 1.0))
        }
        by_chance: Variants = {f"{usual}-classes": (f"{usual} classes", {})}
        return {
            **by_chance,
            **{f"{number}-classes": (f"{number} classes", {"batch_classes": number}) for number in others},
            **near,
            **{
                f"{name}-fine": (f"{words}; {FINE_IN_WORDS}", {**settings, **FINE})
                for name, (words, settings) in {**by_chance, **near}.items()
            },
        }


STUDIES = ("objectives", "signs", "batches")
STUDIED = {
    DATA: Studied(
        classes=(8, 4, 16, 32),
        near_by="conv4-mini-imagenet",
        unchanged=f"{DATA}/paper/map-dlm",
    ),
    "omniglot": Studied(
        classes=(16, 8, 32, 64),
        near_by="conv4-omniglot",
        unchanged="omniglot/objectives/ap",
        changes={"updates": 3_000},
        seeds=(0, 1),
    ),
}

# The best of `trials.ONE_AT_A_TIME` by the validation classes.
LONGER: dict[str, dict[str, Any]] = {
    "map-dlm": {**BEFORE, "augment": ("flip", "crop"), "learning_rate": 0.002, "updates": 44_000},
    "smooth-ap": {**BEFORE, "augment": ("flip", "crop")},
}
JITTER: dict[str, Any] = {"augment": ("flip", "jitter")}
ALL_DECAYS: Variants = {
    "before": ("our earlier recipe", BEFORE),
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
    common = [run for study in STUDIES for run in runs_of(name, study)] if name in STUDIED else []
    common.sort(key=lambda run: run.config.run.seed)  # one of each first
    return [*gap(), *common, *setting_runs(name), *longer(), *decays()] if name == DATA else [*common, *setting_runs(name)]


def runs_of(name: str, study: str) -> list[Run]:
    """Those of one study, seed by seed."""
    studied, config = STUDIED[name], BENCHMARKS[name].config
    questions = replace(JUDGED if study == "objectives" else RUNNING, tasks=COLUMNS[name])
    return [
        Run(f"{folder}/{seed}", config("paper", "map-dlm", seed, **{**studied.changes, **settings}), questions)
        for seed in studied.seeds
        for variant, (_, settings) in studied.variants(study).items()
        if (folder := study_folder(name, study, variant)).startswith(f"{name}/{study}/")
    ]


def study_folder(name: str, study: str, variant: str) -> str:
    """Where the runs of a variant are: some belong to several studies."""
    studied = STUDIED[name]
    settings = studied.variants(study)[variant][1]
    if not settings:
        return studied.unchanged
    return f"{name}/objectives/ap-fine" if settings == FINE else f"{name}/{study}/{variant}"


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
