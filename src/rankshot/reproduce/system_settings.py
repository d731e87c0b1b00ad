"""Where systems stay behind their published figures: one thing of their presets changed, or several.

DATA/maml/NAME/SEED            what its authors' code has
DATA/prototypical/NAME/SEED    what our presets have and its paper has not; then what a recipe of today would add

What changes nothing is a row of the table of all systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .job import Run
from .plan import RUNNING
from .published import COLUMNS, DIGITS, NAMES, PUBLISHED, TITLES
from .systems import config_of, runs_of
from .tables import NORM, asked_by, markdown, seeds_in

Variants = dict[str, tuple[str, dict[str, Any]]]  # name -> what is changed, in words, and its settings

STRIDED, SHARED = {"network": "conv4-strided"}, {"adapt_norm": False}
STRIDED_IN_WORDS = "strides in place of pooling, and the mean over places"
SHARED_IN_WORDS = "the weights of batch norm are the same for all tasks"
# They sum the loss over the classes of a task, where we take the mean: at the same rate their steps are 20 times as long
# with 20 classes, and 5 times with 5.
LONG_OF_20, LONG_OF_5 = {"rate": 0.1 * 20}, {"rate": 0.01 * 5}
LONG_IN_WORDS = "steps as long as theirs"
FULL = {"updates": 60_000}  # as in its paper
SUM, EXACT = {"scale": 1.0}, {"precision": "float32"}
SUM_IN_WORDS, EXACT_IN_WORDS = "the sum of squared differences, not their mean", "float32 in place of bfloat16"


@dataclass(frozen=True)
class Changed:
    """A system on a data set.

    label   of the run that changes nothing, which is that of a preset
    task    that it is trained for
    """

    label: str
    task: str
    variants: Variants


SYSTEMS = {
    "maml": {
        "omniglot": Changed(
            "maml-20-way",
            "1-shot 20-way",
            {
                "all-60000": ("all three", {**STRIDED, **SHARED, **LONG_OF_20, **FULL}),
                "all": ("all three", {**STRIDED, **SHARED, **LONG_OF_20}),
                "rate": (LONG_IN_WORDS, LONG_OF_20),
                "strided": (STRIDED_IN_WORDS, STRIDED),
                "shared-norm": (SHARED_IN_WORDS, SHARED),
                "all-but-rate-60000": ("all but the length of steps", {**STRIDED, **SHARED, **FULL}),
            },
        ),
        "mini-imagenet": Changed(
            "maml",
            "1-shot 5-way",
            {
                "all-60000": ("both", {**SHARED, **LONG_OF_5, **FULL}),
                "rate": (LONG_IN_WORDS, LONG_OF_5),
                "shared-norm": (SHARED_IN_WORDS, SHARED),
            },
        ),
    },
    "prototypical": {
        "mini-imagenet": Changed(
            "prototypical-5-shot",
            "5-shot 5-way",
            {
                "scale-0.01": ("the sum times 0.01, which is 16 times their mean", {"scale": 0.01}),
                "scale-0.1": ("the sum times 0.1", {"scale": 0.1}),
                "sum": (SUM_IN_WORDS, SUM),
                "float32": (EXACT_IN_WORDS, EXACT),
                "sum-float32": (f"{SUM_IN_WORDS}; {EXACT_IN_WORDS}", {**SUM, **EXACT}),
                "cosine": ("the learning rate falls along half a cosine", {"schedule": "cosine"}),
                "decay": (
                    "flips and weight decay 0.1",
                    {"augment": ("flip",), "optimiser": "adamw", "weight_decay": 0.1},
                ),
            },
        ),
    },
}


def setting_runs(name: str) -> list[Run]:
    """The most telling ones first."""
    return [
        Run(
            f"{name}/{system}/{variant}/0",
            config_of(name, system, changed[name].label, seed=0, **settings),
            RUNNING,
            validation_norms=(),
        )
        for system, changed in SYSTEMS.items()
        if name in changed
        for variant, (_, settings) in changed[name].variants.items()
    ]


def settings_table(system: str, results: Path, name: str) -> str | None:
    """The published figure, the row of the table of all systems, and what there is of the variants."""
    changed = SYSTEMS[system].get(name)
    if changed is None:
        return None
    variants = changed.variants.items()
    found = [("nothing", runs_of(results, name, changed.label))]
    found += [(words, seeds_in(results, f"{name}/{system}/{variant}", NORM)) for variant, (words, _) in variants]
    if not any(runs for _, runs in found[1:]):
        return None
    published = PUBLISHED[name][system][COLUMNS[name].index(changed.task)]
    body = [["as published", "", "", f"{published:.{DIGITS[name]}f}"]]
    for words, runs in found:
        for run in runs:
            cell, episodes = run["test"][NORM][changed.task], asked_by(NORM, run["questions"])
            figures = f"{100 * cell['mean']:.2f} ± {100 * cell['interval']:.2f}"
            body.append([words, f"{run['config']['updates']:,}", f"{episodes:,}", figures])
    head = f"{NAMES[name]}, {TITLES[system]}: what is changed"
    return markdown([head, "updates", "episodes", changed.task], body)
