"""The search for a recipe, judged by validation classes alone: shorter runs, as many of Smooth-AP as of mAP-DLM.

What was tried before this list was written has its json too, under names of its own; `trials` leaves out what is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from rankshot.losses.ranking_loss import PAPER
from rankshot.schema import read_json
from rankshot.training import TrainConfig

from .job import Run, settings_in, settings_of
from .plan import BENCHMARKS

Trial = dict[str, Any]
FLIP, TURN, CROP, ALL = ("flip",), ("flip", "turn"), ("flip", "crop"), ("flip", "crop", "jitter")
# What all trials of a data set share; what a run does beside learning does not make it another one.
SHORT: dict[str, Trial] = {
    "omniglot": {"updates": 6000, "validate_every": 6000, "validation_ways": (20,), "validation_episodes": 300},
    "mini-imagenet": {"updates": 8000, "validate_every": 2000, "validation_shots": (1,), "validation_episodes": 300},
    "cub": {"updates": 8000, "validate_every": 500, "validation_episodes": 300},
}
FILED = {"smoothing_samples": "samples", "coarse_weight": "wide"}  # how the files of trials call a setting
BESIDE = ("validate_every", "validation_ways", "validation_shots", "validation_episodes", "log_every", "checkpoint_every")


def grid(method: str, **values: Iterable[Any]) -> list[Trial]:
    """Every combination."""
    return [{"method": method, **dict(zip(values, chosen, strict=True))} for chosen in product(*values.values())]


def dlm(**values: Any) -> Trial:
    return {"method": "map-dlm", "alpha": 1.0, **values}


def with_all(trial: Trial) -> Trial:
    """With the settings of the ranking objective that it leaves open: such trials have no second scale."""
    return {**(PAPER if trial["method"].startswith("map-") else {}), **trial}


# What learns slowly may learn more in the end: as long as the rows of mini-ImageNet, and watched as they are. mAP-DLM's
# best was both scales at once: that is the row itself now.
FULL: Trial = {"updates": 22_000, "validate_every": 500, "validation_shots": (1, 5), "validation_episodes": 100}
FULL_LENGTH = [
    dlm(alpha=3.0, augment=FLIP, schedule="step", mirror=True),
    dlm(alpha=3.0, augment=FLIP, mirror=True),
    *grid("smooth-ap", temperature=[0.01], augment=[FLIP], schedule=["step"], mirror=[True]),
    *grid("smooth-ap", temperature=[0.01, 0.02], augment=[FLIP], mirror=[True]),
]
# From the best of each, one thing at a time: rates, augmentation, weight decay, longer runs, larger batches, a learned
# offset and factor of every dimension (head).
SHARED: list[Trial] = [
    {"updates": 44_000},
    {"learning_rate": 0.002, "augment": CROP, "updates": 44_000},
    {"batch_size": 256, "batch_classes": 16},
    {"head": "scale"},
    {"learning_rate": 0.002},
    {"augment": CROP},
    {"optimiser": "adamw", "weight_decay": 0.1},
    {"average": 0.999, "learning_rate": 0.002},
    # What helped, together: crops for longer, and weight decay.
    {"optimiser": "adamw", "weight_decay": 0.1, "learning_rate": 0.002, "augment": CROP, "updates": 44_000},
]
ONE_AT_A_TIME: list[Trial] = [
    {**start, **changes}
    for start in (
        dlm(epsilon=0.003, augment=FLIP, coarse_weight=1.0, mirror=True),
        {"method": "smooth-ap", "temperature": 0.01, "augment": FLIP, "schedule": "step", "mirror": True},
    )
    for changes in SHARED
]
SMOOTH = {"epsilon": 0.0006, "smoothing": 0.01}
TRIALS: dict[str, list[Trial]] = {
    "omniglot": [
        dlm(**SMOOTH, learning_rate=0.004, coarse_weight=0.3),
        dlm(**SMOOTH, learning_rate=0.004, coarse_weight=1.0),
        dlm(epsilon=0.001, learning_rate=0.004, coarse_weight=0.1),
        dlm(epsilon=0.001, learning_rate=0.004, coarse_weight=0.3),
        dlm(**SMOOTH, learning_rate=0.004, coarse_weight=0.3, augment=("crop",)),
        dlm(**SMOOTH, learning_rate=0.008, coarse_weight=0.3),
        dlm(**SMOOTH, learning_rate=0.004, augment=("crop",)),
        dlm(**SMOOTH, smoothing_samples=32, learning_rate=0.004),
        *grid("map-ssvm", alpha=[2.0, 3.0, 5.0], learning_rate=[0.002, 0.004]),
        *grid("siamese", learning_rate=[0.003, 0.01, 0.03, 0.1]),
        *grid(
            "smooth-ap",
            temperature=[0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02],
            learning_rate=[0.001, 0.002, 0.004, 0.008],
        ),
        *grid(
            "smooth-ap",
            temperature=[0.002, 0.003, 0.005, 0.007, 0.01],
            learning_rate=[0.002, 0.004, 0.008],
            augment=[("crop",)],
        ),
        *grid("smooth-ap", temperature=[0.003, 0.005, 0.01], learning_rate=[0.002, 0.004], average=[0.999]),
        *grid(
            "smooth-ap",
            temperature=[0.003, 0.005, 0.01],
            learning_rate=[0.001, 0.002],
            schedule=["constant"],
            average=[0.0, 0.999],
        ),
        *grid("smooth-ap", temperature=[0.003, 0.005], learning_rate=[0.004, 0.008], augment=[("crop",)], seed=[1]),
    ],
    "mini-imagenet": [
        dlm(epsilon=0.003, augment=FLIP, coarse_weight=0.1),
        dlm(epsilon=0.003, augment=FLIP, coarse_weight=0.3),
        dlm(epsilon=0.003, augment=FLIP, coarse_weight=1.0),
        dlm(epsilon=0.003, augment=CROP, coarse_weight=0.3),
        dlm(epsilon=0.001, smoothing=0.02, smoothing_samples=32, augment=FLIP, coarse_weight=0.3),
        *grid("map-ssvm", alpha=[2.0, 3.0, 5.0], augment=[FLIP]),
        *grid("siamese", learning_rate=[0.001, 0.003, 0.01, 0.03], augment=[FLIP]),
        *grid(
            "smooth-ap",
            temperature=[0.005, 0.01, 0.015, 0.02],
            learning_rate=[0.0005, 0.001, 0.002, 0.004],
            augment=[FLIP],
        ),
        *grid("smooth-ap", temperature=[0.01, 0.015], learning_rate=[0.001, 0.002], augment=[CROP]),
        *grid("smooth-ap", temperature=[0.01, 0.015], learning_rate=[0.001], augment=[FLIP], average=[0.999]),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.001, 0.002], augment=[FLIP], schedule=["step"]),
        *grid("smooth-ap", temperature=[0.015], learning_rate=[0.001, 0.002], augment=[FLIP], seed=[1]),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.001], augment=[ALL]),
        dlm(alpha=3.0, augment=FLIP, schedule="step"),
        dlm(epsilon=0.003, augment=FLIP, schedule="step"),
        dlm(epsilon=0.003, augment=TURN),
        dlm(epsilon=0.003, augment=TURN, coarse_weight=1.0),
        dlm(alpha=3.0, augment=TURN),
        dlm(epsilon=0.001, smoothing=0.02, augment=FLIP, mirror=True),
        dlm(epsilon=0.003, augment=TURN, mirror=True),
        dlm(epsilon=0.001, smoothing=0.02, augment=FLIP, mirror=True, batch_classes=16),
        dlm(alpha=3.0, augment=FLIP, schedule="step", mirror=True),
        *grid("smooth-ap", temperature=[0.01, 0.015], learning_rate=[0.001], augment=[TURN]),
        *grid("smooth-ap", temperature=[0.012, 0.02], learning_rate=[0.001], augment=[FLIP], average=[0.999]),
        *grid("smooth-ap", temperature=[0.015], learning_rate=[0.001], augment=[FLIP], schedule=["step"]),
        *grid("smooth-ap", temperature=[0.01, 0.015], learning_rate=[0.001], augment=[FLIP], mirror=[True]),
        *grid("smooth-ap", temperature=[0.015], learning_rate=[0.001], augment=[TURN], mirror=[True]),
        *grid("smooth-ap", temperature=[0.015], learning_rate=[0.001], augment=[FLIP], mirror=[True], batch_classes=[16]),
        *({**trial, **FULL} for trial in FULL_LENGTH),
        *({**FULL, **trial} for trial in ONE_AT_A_TIME),
    ],
    "cub": [
        dlm(epsilon=0.003, augment=ALL, coarse_weight=0.3),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=1.0),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=3.0),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=1.0, learning_rate=0.002),
        dlm(epsilon=0.001, augment=ALL, coarse_weight=1.0),
        dlm(epsilon=0.003, smoothing=0.02, smoothing_samples=32, augment=ALL, coarse_weight=1.0),
        dlm(alpha=3.0, augment=ALL, learning_rate=0.002),
        dlm(alpha=2.0, augment=ALL),
        dlm(alpha=3.0, augment=ALL, average=0.999),
        *grid("map-ssvm", alpha=[2.0, 3.0, 5.0], augment=[ALL]),
        *grid("siamese", learning_rate=[0.001, 0.003, 0.01, 0.03], augment=[ALL]),
        *grid("smooth-ap", temperature=[0.003, 0.005, 0.007, 0.01, 0.015, 0.02], learning_rate=[0.001], augment=[ALL]),
        *grid("smooth-ap", temperature=[0.005, 0.01, 0.015], learning_rate=[0.002], augment=[ALL]),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.0005, 0.004], augment=[ALL]),
        *grid("smooth-ap", temperature=[0.005, 0.01], learning_rate=[0.002], augment=[CROP]),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.001], augment=[ALL], average=[0.999]),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=1.0, average=0.999),
        dlm(epsilon=0.003, augment=(*ALL, "turn"), coarse_weight=1.0),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.001], augment=[(*ALL, "turn")], average=[0.999]),
        *grid("smooth-ap", temperature=[0.005], learning_rate=[0.001], augment=[ALL], average=[0.999]),
        *grid("smooth-ap", temperature=[0.007], learning_rate=[0.0005, 0.001], augment=[ALL], average=[0.999]),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=1.0, mirror=True),
        *grid("smooth-ap", temperature=[0.01], learning_rate=[0.001], augment=[ALL], average=[0.999], mirror=[True]),
        dlm(epsilon=0.003, augment=ALL, coarse_weight=1.0, average=0.999, mirror=True),
        *grid("smooth-ap", temperature=[0.007], learning_rate=[0.001], augment=[ALL], average=[0.999], mirror=[True]),
    ],
}


def trials(name: str, results: Path) -> list[Run]:
    """Those of the list, without what was tried under another name."""
    folder = results / "trials" / name
    tried = {essence(settings_in(read_json(path), path)): path.stem for path in sorted(folder.glob("*.json"))}
    runs = []
    for trial in TRIALS[name]:
        config = BENCHMARKS[name].base.changed(**{"schedule": "cosine", **SHORT[name], **with_all(trial)})
        label = name_of(trial)
        if tried.get(essence(settings_of(config)), label) == label:
            runs.append(Run(f"trials/{name}/{label}", config, None))
    return runs


def name_of(trial: Trial) -> str:
    """The method, and what it sets.

    >>> name_of({"method": "smooth-ap", "temperature": 0.01, "augment": ("flip", "crop")})
    'smooth-ap_temperature-0.01_augment-flip-crop'
    """
    settings = (
        f"{FILED.get(key, key)}-{'-'.join(value) if isinstance(value, tuple) else value}"
        for key, value in trial.items()
        if key not in ("method", *BESIDE)
    )
    return "_".join([trial["method"], *settings])


def essence(settings: dict[str, Any]) -> str:
    """What makes a run that run; a learning rate that is left open is the method's."""
    kept = {name: value for name, value in settings.items() if name not in BESIDE}
    if kept.get("learning_rate") is None:
        kept["learning_rate"] = TrainConfig.of(method=kept["method"]).first_learning_rate
    if not kept.get("smoothing"):
        kept.pop("smoothing_samples", None)
    if not kept.get("coarse_weight"):
        kept.pop("coarse_alpha", None)
    return repr(sorted(kept.items()))
