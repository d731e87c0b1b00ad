"""What the paper claims, beside what came out: small tables for docs/paper.md, from the json files of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, variance
from typing import Any

from rankshot.models.folder_files import EVALUATION
from rankshot.models.shipped import FOLDER
from rankshot.schema import read_json

from .figures import LAST, alpha_curves, learning_runs, learning_tasks
from .plan import METHODS
from .published import COLUMNS, DATA_NAMES, PUBLISHED, TITLES
from .systems import row
from .tables import NORM, in_percent, markdown, records, seeds_in, student

Curve = Sequence[dict[str, Any]]
IN_A_ROW = 3  # validations that are averaged, to tell when a level is reached


def learning_speed(results: Path, name: str) -> str:
    """After how many updates each method reaches what the siamese network of its seed comes to, with the paper's recipe."""
    methods = ["siamese", *(method for method in METHODS if method != "siamese")]
    by_method = {method: runs for method in methods if (runs := learning_runs(results, name, method))}
    if "siamese" not in by_method:
        return "Not measured yet."
    rows = []
    for task in learning_tasks(name):
        for seed, siamese in by_method["siamese"].items():
            level = mean(point[task]["mean"] for point in siamese["curve"][-LAST:])
            of = reached_at(siamese["curve"], task, level)
            same_seed = [by_seed.get(seed) for by_seed in by_method.values()]
            cells = [_updates(reached_at(run["curve"], task, level), of) if run else "–" for run in same_seed]
            rows.append([task, str(seed), f"{100 * level:.1f}", *cells])
    return markdown([DATA_NAMES[name], "seed", "level", *(TITLES[method] for method in by_method)], rows)


def _updates(update: int | None, of: int | None) -> str:
    """With what part of the siamese network's it is."""
    part = f" ({100 * update / of:.0f} %)" if update and of and update != of else ""
    return "never" if update is None else f"{update:,}{part}"


def reached_at(curve: Curve, task: str, level: float) -> int | None:
    """The first update whose validation, averaged with those around it, is at the level; None: there is none."""
    for at in range(len(curve) - IN_A_ROW + 1):
        window = curve[at : at + IN_A_ROW]
        if mean(point[task]["mean"] for point in window) >= level:
            return int(window[IN_A_ROW // 2]["update"])
    return None


def differences(results: Path, name: str, pairs: Sequence[tuple[str, str]]) -> str:
    """One method less another with the paper's recipe: as published, and here with a 95 % interval over the seeds.

    Student's, as that of a row (`with_interval`), but without the interval over episodes: both are asked the same.
    """
    tasks = COLUMNS[name]
    body = []
    for one, other in pairs:
        label = f"{TITLES[one]} minus {TITLES[other]}"
        if {one, other} <= PUBLISHED[name].keys():
            body.append([f"{label}, as published", *less(PUBLISHED[name][one], PUBLISHED[name][other])])
        runs = [seeds_in(results, f"{name}/paper/{method}", NORM) for method in (one, other)]
        if all(len(found) > 1 for found in runs):
            figures = ([[record["test"][NORM][task]["mean"] for record in found] for found in runs] for task in tasks)
            body.append([f"{label}, here", *(_difference(*both) for both in figures)])
    return markdown([DATA_NAMES[name], *tasks], body)


def _difference(ones: Sequence[float], others: Sequence[float]) -> str:
    """The deviation over seeds is taken to be the same of both."""
    degrees = len(ones) + len(others) - 2
    pooled = ((len(ones) - 1) * variance(ones) + (len(others) - 1) * variance(others)) / degrees
    interval = student(degrees) * (pooled * (1 / len(ones) + 1 / len(others))) ** 0.5
    return f"{100 * (mean(ones) - mean(others)):+.2f} ± {100 * interval:.2f}"


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
    return markdown([f"{DATA_NAMES[name]}: mAP-DLM minus …", *head], body)


def less(ones: Sequence[float | None], others: Sequence[float | None]) -> list[str]:
    """Column by column; – where there is nothing to compare."""
    pairs = zip(ones, others, strict=True)
    return ["–" if one is None or other is None else f"{one - other:+.1f}" for one, other in pairs]


def fewer_episodes(results: Path) -> str:
    """What the 600 episodes of mini-ImageNet gave that rows once had, less what the 10,000 give.

    The rows were trained again, with the same settings and seeds: mean, lowest and highest. The network was not.
    """
    name = "mini-imagenet"
    tasks = COLUMNS[name]
    by_row = [
        [100 * (then["test"][NORM][task]["mean"] - now["test"][NORM][task]["mean"]) for task in tasks]
        for method in METHODS
        for then, now in zip(*(records(results, f"{name}/{at}/{method}/*") for at in ("earlier", "paper")), strict=True)
    ]
    then = records(results, f"{name}/earlier/best-map-dlm/0")
    if not by_row or not then:
        return "Not measured yet."
    spread = [f"{mean(column):+.2f} ({min(column):+.2f} to {max(column):+.2f})" for column in zip(*by_row, strict=True)]
    now = read_json(FOLDER / "conv4-mini-imagenet" / EVALUATION)["tasks"]
    same = [f"{100 * (then[0]['test'][NORM][task]['mean'] - now[task]['mean']):+.2f}" for task in tasks]
    body = [[f"{len(by_row)} runs of the paper's recipe, trained again", *spread]]
    return markdown([f"{DATA_NAMES[name]}: 600 minus 10,000 episodes", *tasks], [*body, ["`conv4-mini-imagenet`", *same]])


def alphas(results: Path) -> str:
    """What mAP-DLM and mAP-SSVM come to with each alpha, and their best: retrieval among the most validation classes."""
    body = []
    for name in ("omniglot", "mini-imagenet"):
        for method in ("map-dlm", "map-ssvm"):
            chart = alpha_curves(results, name, method)
            task = chart.tasks[0]
            by_alpha = [[100 * point[task]["mean"] for point in curve] for curve in chart.lines.values()]
            cells = (f"{mean(found[-LAST:]):.1f} ({max(found):.1f})" if found else "–" for found in by_alpha)
            body.append([f"{DATA_NAMES[name]}, {TITLES[method]}, {task}", *cells])
    return markdown(["", *chart.lines], body)


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
        body.append([label, *map(in_percent, tasks)])
        told.append(found["episodes"])
    return f"{markdown(['`conv4-omniglot`', *COLUMNS['omniglot']], body)}\n\n{min(told):,} episodes per task."
