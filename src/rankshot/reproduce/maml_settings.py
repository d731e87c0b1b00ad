"""Where MAML stays behind its published figures: what its authors' code has, and the presets of MAML have not.

DATA/maml/NAME/SEED    one thing changed, or all; what changes nothing is a row of the table of all systems
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .job import Run
from .plan import RUNNING
from .published import COLUMNS, DIGITS, NAMES, PUBLISHED
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
# Of each data set: the run that changes nothing, which is that of a preset, and the task that it is trained for.
UNCHANGED = {"omniglot": ("maml-20-way", "1-shot 20-way"), "mini-imagenet": ("maml", "1-shot 5-way")}
VARIANTS: dict[str, Variants] = {
    "omniglot": {
        "all-60000": ("all three", {**STRIDED, **SHARED, **LONG_OF_20, **FULL}),
        "all": ("all three", {**STRIDED, **SHARED, **LONG_OF_20}),
        "rate": (LONG_IN_WORDS, LONG_OF_20),
        "strided": (STRIDED_IN_WORDS, STRIDED),
        "shared-norm": (SHARED_IN_WORDS, SHARED),
        "all-but-rate-60000": ("all but the length of steps", {**STRIDED, **SHARED, **FULL}),
    },
    "mini-imagenet": {
        "all-60000": ("both", {**SHARED, **LONG_OF_5, **FULL}),
        "rate": (LONG_IN_WORDS, LONG_OF_5),
        "shared-norm": (SHARED_IN_WORDS, SHARED),
    },
}


def maml_runs(name: str) -> list[Run]:
    """The most telling ones first."""
    return [
        Run(
            f"{name}/maml/{variant}/0",
            config_of(name, "maml", UNCHANGED[name][0], seed=0, **settings),
            RUNNING,
            validation_norms=(),
        )
        for variant, (_, settings) in VARIANTS.get(name, {}).items()
    ]


def maml_table(results: Path, name: str) -> str | None:
    """The published figure, the row of the table of all systems, and what there is of the variants."""
    label, task = UNCHANGED[name]
    found = [("nothing", runs_of(results, name, label))]
    found += [(words, seeds_in(results, f"{name}/maml/{variant}", NORM)) for variant, (words, _) in VARIANTS[name].items()]
    if not any(runs for _, runs in found[1:]):
        return None
    published = PUBLISHED[name]["maml"][COLUMNS[name].index(task)]
    body = [["as published", "", "", f"{published:.{DIGITS[name]}f}"]]
    for words, runs in found:
        for run in runs:
            cell, episodes = run["test"][NORM][task], asked_by(NORM, run["questions"])
            figures = f"{100 * cell['mean']:.2f} ± {100 * cell['interval']:.2f}"
            body.append([words, f"{run['config']['updates']:,}", f"{episodes:,}", figures])
    return markdown([f"{NAMES[name]}, MAML: what is changed", "updates", "episodes", task], body)
