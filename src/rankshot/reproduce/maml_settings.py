"""Where MAML stays behind its published figures: what its authors' code has, and the presets of MAML have not.

DATA/maml/NAME/SEED    one thing changed, or both; what changes nothing is a row of the table of all systems
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .job import Run
from .plan import RUNNING
from .published import COLUMNS, DIGITS, NAMES, PUBLISHED
from .systems import config_of, runs_of
from .tables import NORM, markdown, records

Variants = dict[str, tuple[str, dict[str, Any]]]  # name -> what is changed, in words, and its settings

STRIDED, SHARED = {"network": "conv4-strided"}, {"adapt_norm": False}
SHARED_IN_WORDS = "the weights of batch norm are the same for all tasks"
# Of each data set: the run that changes nothing, which is that of a preset, and the task that it is trained for.
UNCHANGED = {"omniglot": ("maml-20-way", "1-shot 20-way"), "mini-imagenet": ("maml", "1-shot 5-way")}
VARIANTS: dict[str, Variants] = {
    "omniglot": {
        "all-40000": ("both", {**STRIDED, **SHARED, "updates": 40_000}),
        "all": ("both", {**STRIDED, **SHARED}),
        "strided": ("strides in place of pooling, and the mean over places", STRIDED),
        "shared-norm": (SHARED_IN_WORDS, SHARED),
    },
    "mini-imagenet": {
        "shared-norm-60000": (SHARED_IN_WORDS, {**SHARED, "updates": 60_000}),
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
    found += [(words, records(results, f"{name}/maml/{variant}/*")) for variant, (words, _) in VARIANTS[name].items()]
    if not any(runs for _, runs in found[1:]):
        return None
    published = PUBLISHED[name]["maml"][COLUMNS[name].index(task)]
    body = [["as published", "", f"{published:.{DIGITS[name]}f}"]]
    for words, runs in found:
        for run in runs:
            cell = run["test"][NORM][task]
            figures = f"{100 * cell['mean']:.2f} ± {100 * cell['interval']:.2f}"
            body.append([words, f"{run['config']['updates']:,}", figures])
    return markdown([f"{NAMES[name]}, MAML: what is changed", "updates", task], body)
