"""Systems with other settings than those of their presets: one thing changed, or several.

DATA/maml/NAME/SEED                    without something that its authors' code has; short runs
mini-imagenet/prototypical/NAME/SEED   other factors of the distances; what a recipe of today would add

What changes nothing is a row of the table of all systems, or a short run too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .job import Run
from .plan import RUNNING, SEEDS
from .published import COLUMNS, DATA_NAMES, DIGITS, PUBLISHED, TITLES
from .systems import FALLS, config_of, runs_of
from .tables import NORM, asked_by, markdown, seeds_in, seeds_told, with_interval

Variants = dict[str, tuple[str, dict[str, Any]]]  # name -> what it is, in words, and its settings

POOLED, ADAPTED = {"network": "conv4"}, {"adapt_norm": True}
POOLED_IN_WORDS = "pooling in place of strides, and no mean over places"
ADAPTED_IN_WORDS = "the steps of a task change its batch norm too"
SHORT_OF_20, SHORT_OF_5 = {"rate": 0.1}, {"rate": 0.01}  # as in its paper, but of the mean over the classes, not their sum
SHORT_IN_WORDS = "steps of {} of the length"
ALL_IN_WORDS = "all of these"
FEW_UPDATES = {"updates": 6_000, **FALLS}
MEAN = {"scale": 0.000625, "updates": 22_000}
SUM, SUM_IN_WORDS = {"scale": 1.0}, "the sum of the squared differences, as in the paper"


@dataclass(frozen=True)
class Changed:
    """A system on a data set.

    label   of the run that changes nothing, which is that of a preset
    task    that it is trained for
    more_seeds   of these variants, which were rows of the table once
    shorter      what makes all runs of the study shorter than the row of the table; with one more that changes nothing else
    """

    label: str
    task: str
    variants: Variants
    more_seeds: tuple[str, ...] = ()
    shorter: Mapping[str, Any] = field(default_factory=dict)

    def runs(self) -> Variants:
        return {**({"nothing": ("nothing", {})} if self.shorter else {}), **self.variants}

    def seeds(self, variant: str) -> tuple[int, ...]:
        return SEEDS if variant in self.more_seeds else SEEDS[:1]


SYSTEMS = {
    "maml": {
        "omniglot": Changed(
            "maml-20-way",
            "1-shot 20-way",
            {
                "short": (SHORT_IN_WORDS.format("a twentieth"), SHORT_OF_20),
                "pooled": (POOLED_IN_WORDS, POOLED),
                "adapted-norm": (ADAPTED_IN_WORDS, ADAPTED),
                "all": (ALL_IN_WORDS, {**SHORT_OF_20, **POOLED, **ADAPTED}),
            },
            shorter=FEW_UPDATES,
        ),
        "mini-imagenet": Changed(
            "maml",
            "1-shot 5-way",
            {
                "short": (SHORT_IN_WORDS.format("a fifth"), SHORT_OF_5),
                "adapted-norm": (ADAPTED_IN_WORDS, ADAPTED),
                "all": (ALL_IN_WORDS, {**SHORT_OF_5, **ADAPTED}),
            },
            shorter={**FEW_UPDATES, "validate_every": 1_000},
        ),
    },
    "prototypical": {
        "mini-imagenet": Changed(
            "prototypical-5-shot",
            "5-shot 5-way",
            {
                "mean": ("the mean of the squared differences, which is their sum times 0.000625", MEAN),
                "sum": (SUM_IN_WORDS, SUM),
                "sum-float32": (f"{SUM_IN_WORDS}; float32 in place of bfloat16", {**SUM, "precision": "float32"}),
                "cosine": ("the learning rate falls along half a cosine", FALLS),
                "decay": (
                    "flips and weight decay 0.1",
                    {"augment": ("flip",), "optimiser": "adamw", "weight_decay": 0.1},
                ),
            },
            more_seeds=("mean",),
        ),
    },
}


def setting_runs(name: str) -> list[Run]:
    """The most telling ones first."""
    return [
        Run(
            f"{name}/{system}/{variant}/{seed}",
            config_of(name, system, changed[name].label, seed=seed, **{**changed[name].shorter, **settings}),
            replace(RUNNING, tasks=(changed[name].task,)),
            validation_norms=(),
        )
        for system, changed in SYSTEMS.items()
        if name in changed
        for variant, (_, settings) in changed[name].runs().items()
        for seed in changed[name].seeds(variant)
    ]


def settings_table(system: str, results: Path, name: str) -> str | None:
    """The published figure, what changes nothing, and what there is of the variants.

    None: there is nothing to compare, or nothing to compare it with.
    """
    changed = SYSTEMS[system].get(name)
    if changed is None:
        return None
    usual = [] if changed.shorter else [("nothing", runs_of(results, name, changed.label))]
    variants = changed.runs().items()
    found = [*usual, *((words, seeds_in(results, f"{name}/{system}/{variant}", NORM)) for variant, (words, _) in variants)]
    if not found[0][1] or not any(runs for _, runs in found[1:]):
        return None
    published = PUBLISHED[name][system][COLUMNS[name].index(changed.task)]
    body = [["as published", "", "", f"{published:.{DIGITS[name]}f}"]]
    for words, runs in found:
        if runs:
            updates, episodes = runs[0]["config"]["updates"], asked_by(NORM, runs[0]["questions"])
            told = f"{words} ({seeds_told(runs)})"
            body.append([told, f"{updates:,}", f"{episodes:,}", with_interval(runs, NORM, changed.task)])
    head = f"{DATA_NAMES[name]}, {TITLES[system]}: what is changed"
    return markdown([head, "updates", "episodes", changed.task], body)
