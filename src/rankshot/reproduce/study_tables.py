"""Tables of the studies on mini-ImageNet, from the json files of runs and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from .gap import DATA, VARIANTS
from .job import NORMS
from .published import ALPHA_ONE, COLUMNS, NAMES, PUBLISHED
from .studies import BATCHES, LONGER, METRICS, OBJECTIVES, SIGNS, Variants
from .tables import Record, asked_by, markdown, means, records

TASKS = COLUMNS[DATA]


def objectives_table(results: Path) -> str | None:
    """What is optimised, and what the same rankings are worth by every metric; the best of a column is bold."""
    figures = objectives_measured(results)
    if not figures:
        return None
    best = [max(f"{row[at]:06.2f}" for row in figures.values()) for at in range(len(METRICS))]
    rows = [
        [
            OBJECTIVES[name][0],
            *(f"**{cell:.2f}**" if f"{cell:06.2f}" == top else f"{cell:.2f}" for cell, top in zip(row, best, strict=True)),
        ]
        for name, row in figures.items()
    ]
    return markdown(["objective", *METRICS.values()], rows)


def objectives_measured(results: Path) -> dict[str, list[float]]:
    """Name of a run -> by every metric its mean in percent, of what there is."""
    found = {}
    for name in OBJECTIVES:
        for record in records(results, f"{DATA}/objectives/{name}/0"):
            found[name] = [100 * _judged(record, metric) for metric in METRICS]
    return found


def _judged(record: Record, metric: str) -> float:
    try:
        value = float(record["retrieval_metrics"][metric]["mean"])
    except (KeyError, TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the record of {record.get('name', 'a run')} has no figure of its retrieval by {metric!r}")
    return value


def signs_table(results: Path) -> str | None:
    return _table("update", variant_rows(results, "signs", SIGNS, lambda _: "positive"))


def batches_table(results: Path) -> str | None:
    return _table("128 images of", variant_rows(results, "batches", BATCHES, lambda _: "8-classes"))


def gap_table(results: Path) -> str | None:
    """The paper's figures, and ours with the authors' settings; mAP-DLM's are compared with mAP-DLM's."""
    published = {
        "mAP-SSVM, alpha 1, as published": ALPHA_ONE["map-ssvm"],
        "mAP-DLM, alpha 10, as published": PUBLISHED[DATA]["map-dlm"],
    }
    above = [[label, *("–" if each is None else f"{each:.2f}" for each in row)] for label, row in published.items()]
    rows = variant_rows(results, "gap", VARIANTS, lambda name: "dlm-as-it-is" if name.startswith("dlm-") else "as-it-is")
    return _table("what is changed", [*above, *rows]) if rows else None


def variant_rows(results: Path, study: str, variants: Variants, base_of: Callable[[str], str]) -> list[list[str]]:
    """Two rows a variant that is there, one a norm: means over its seeds, and the difference to the variant that it is
    compared with, which is that of its name by `base_of`."""
    runs = {name: records(results, f"{DATA}/{study}/{name}/*") for name in variants}
    rows = []
    for name, (words, _) in variants.items():
        for norm in NORMS if runs[name] else ():
            base = base_of(name)
            against = means(runs[base], norm, TASKS) if name != base and runs[base] else None
            seeds = f"{len(runs[name])} seed{'s' * (len(runs[name]) > 1)}"
            rows.append([f"{words} ({seeds}), {norm} statistics", *_cells(means(runs[name], norm, TASKS), against)])
    return rows


def longer_table(results: Path) -> str | None:
    """Our recipe, and what the last trials would have instead: on the validation classes, and on the test classes."""
    body = []
    for method in LONGER:
        for folder, words in (("best", "our recipe"), ("longer", "the best of the last trials")):
            if runs := records(results, f"{DATA}/{folder}/{method}/*"):
                at_last = 100 * mean(list(record["validation"]["running"].values())[-1]["mean"] for record in runs)
                episodes = max(asked_by("running", record["questions"]) for record in runs)
                figures = (f"{figure:.2f}" for figure in means(runs, "running", TASKS))
                body.append([f"{NAMES[method]}, {words}", f"{at_last:.2f}", f"{episodes:,}", *figures])
    return markdown([NAMES[DATA], "validation: retrieval 16-way", "test episodes", *TASKS], body) if body else None


def _cells(figures: Sequence[float], against: Sequence[float] | None) -> list[str]:
    if against is None:
        return [f"{figure:.2f}" for figure in figures]
    return [f"{figure:.2f} ({figure - other:+.2f})" for figure, other in zip(figures, against, strict=True)]


def _table(first: str, rows: Sequence[Sequence[str]]) -> str | None:
    return markdown([first, *TASKS], rows) if rows else None


SECTIONS: tuple[tuple[str, str, Callable[[Path], str | None]], ...] = (
    (
        "The paper's recipe with the authors' settings",
        "mAP-SSVM with alpha 1, unless the row says otherwise. Means in % over seeds, batch norm with running statistics "
        "and with those of each episode. In brackets: the difference to the runs in which nothing is changed.",
        gap_table,
    ),
    (
        "Objectives and metrics",
        "mAP-DLM trained for each metric; the rankings of 20-way retrieval on test classes, judged by every metric, in %.",
        objectives_table,
    ),
    (
        "Signs of the update",
        "mAP-DLM: means in % over seeds. In brackets: the difference to the positive update.",
        signs_table,
    ),
    (
        "Classes of a batch",
        "mAP-DLM, in %. In brackets: the difference to the batch of the paper.",
        batches_table,
    ),
    (
        "The last trials",
        "Means in % over three seeds, batch norm with running statistics, with mirror images.",
        longer_table,
    ),
)


def page(results: Path) -> str:
    """All studies that there are json files of; nothing where there are none."""
    parts = []
    for title, what, table_of in SECTIONS:
        if table := table_of(results):
            parts += [f"### {title}", what, table]
    return "\n\n".join([f"## Studies on {NAMES[DATA]}", *parts]) + "\n" if parts else ""
