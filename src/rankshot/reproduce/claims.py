"""What the paper claims, beside what came out: small tables for docs/paper.md, from the json files of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, variance
from typing import Any

from rankshot.models.folder_files import EVALUATION
from rankshot.models.shipped import FOLDER
from rankshot.schema import read_json

from .figures import learning_curves
from .published import COLUMNS, NAMES, PUBLISHED, TITLES
from .systems import row
from .tables import NORM, markdown, seeds_in

Curve = Sequence[dict[str, Any]]
AT_REST = 5  # the last validations of a run, of which the mean is what it came to
IN_A_ROW = 3  # validations that are averaged, to tell when a level is reached
SIAMESE = NAMES["siamese"]


def learning_speed(results: Path, name: str) -> str:
    """After how many updates each method reaches what the siamese network comes to, with the paper's recipe."""
    curves, tasks, *_ = learning_curves(results, name)
    siamese = curves.get(SIAMESE)
    if not siamese:
        return "Not measured yet."
    curves = {SIAMESE: siamese, **curves}  # which comes first
    rows = []
    for task in tasks:
        level = mean(point[task]["mean"] for point in siamese[-AT_REST:])
        reached = (reached_at(curve, task, level) for curve in curves.values())
        rows.append([task, f"{100 * level:.1f}", *("never" if at is None else f"{at:,}" for at in reached)])
    return markdown([NAMES[name], "level", *curves], rows)


def reached_at(curve: Curve, task: str, level: float) -> int | None:
    """The first update whose validation, averaged with those around it, is at the level; None: there is none."""
    for at in range(len(curve) - IN_A_ROW + 1):
        window = curve[at : at + IN_A_ROW]
        if mean(point[task]["mean"] for point in window) >= level:
            return int(window[IN_A_ROW // 2]["update"])
    return None


def differences(results: Path, name: str, pairs: Sequence[tuple[str, str]]) -> str:
    """One method less another with the paper's recipe: as published, and here with two standard errors over the seeds."""
    tasks = COLUMNS[name]
    body = []
    for one, other in pairs:
        label = f"{NAMES[one]} minus {NAMES[other]}"
        if {one, other} <= PUBLISHED[name].keys():
            body.append([f"{label}, as published", *less(PUBLISHED[name][one], PUBLISHED[name][other])])
        runs = [seeds_in(results, f"{name}/paper/{method}", NORM) for method in (one, other)]
        if all(len(found) > 1 for found in runs):
            figures = ([[record["test"][NORM][task]["mean"] for record in found] for found in runs] for task in tasks)
            body.append([f"{label}, here", *(_difference(*both) for both in figures)])
    return markdown([NAMES[name], *tasks], body)


def _difference(ones: Sequence[float], others: Sequence[float]) -> str:
    error = (variance(ones) / len(ones) + variance(others) / len(others)) ** 0.5
    return f"{100 * (mean(ones) - mean(others)):+.2f} ± {200 * error:.2f}"


def ahead_of_others(results: Path, name: str) -> str:
    """mAP-DLM with the paper's recipe less every other system that the paper compares it with, as published and here."""
    tasks = [task for task in COLUMNS[name] if not task.startswith("retrieval")]
    body = []
    for system in (other for other in PUBLISHED[name] if other not in ("map-dlm", "map-ssvm")):
        here = less(row(results, name, "map-dlm", NORM), row(results, name, system, NORM))
        published = less(PUBLISHED[name]["map-dlm"], PUBLISHED[name][system])
        cells = [text for pair in zip(published, here, strict=True) for text in pair]
        body.append([TITLES[system], *cells[: 2 * len(tasks)]])
    head = [f"{task}, {where}" for task in tasks for where in ("published", "here")]
    return markdown([f"{NAMES[name]}: mAP-DLM minus …", *head], body)


def less(ones: Sequence[float | None], others: Sequence[float | None]) -> list[str]:
    """Column by column; – where there is nothing to compare."""
    pairs = zip(ones, others, strict=True)
    return ["–" if one is None or other is None else f"{one - other:+.1f}" for one, other in pairs]


def turned(results: Path) -> str:
    """`conv4-omniglot`, with rotated test characters as classes of their own and without."""
    files = {
        "rotated characters count as classes": FOLDER / "conv4-omniglot" / EVALUATION,
        "upright characters only": results / "shipped" / "conv4-omniglot-upright.json",
    }
    body, told = [], []
    for label, file in files.items():
        found = read_json(file)
        tasks = (found["tasks"][task] for task in COLUMNS["omniglot"])
        body.append([label, *(f"{100 * cell['mean']:.2f} ± {100 * cell['interval']:.2f}" for cell in tasks)])
        told.append(found["episodes"])
    return f"{markdown(['`conv4-omniglot`', *COLUMNS['omniglot']], body)}\n\n{min(told):,} episodes per task."
