"""Runs of the slow systems by their number of updates, and Prototypical Networks by the factor of their distances."""

from __future__ import annotations

from typing import Any

from rankshot.reproduce.published import COLUMNS, DATA_NAMES, DIGITS, PUBLISHED
from rankshot.reproduce.systems import presets
from rankshot.reproduce.tables import NORM, asked_by, in_percent, markdown, records

from ..places import ROOT

RESULTS = ROOT / "results"
FACTORS = RESULTS / "trials" / "prototypical-scale"
FACTORS_IN_WORDS = {0.000625: "0.000625, the mean of 1,600", 1.0: "1, the sum, as in the paper"}


def lengths(method: str) -> str:
    """Every run of a system, task by task: those with earlier settings, then those of the table of all systems."""
    rows = []
    for name, published in PUBLISHED.items():
        for label in presets(name, method):
            [at] = (at for at, task in enumerate(COLUMNS[name]) if _is_made_for(label, task))
            task, figure = COLUMNS[name][at], published.get(method, (None,) * len(COLUMNS[name]))[at]
            found = [*_runs(f"{name}/earlier/{label}"), *_runs(f"{name}/systems/{label}")]
            if found and figure is not None:
                rows.append([f"{DATA_NAMES[name]}, {task}", "as published", "", f"{figure:.{DIGITS[name]}f}", "", ""])
            rows += [_row(f"{DATA_NAMES[name]}, {task}", task, place, run) for place, run in found]
    return markdown(["", "updates", "learning rate", "accuracy", "episodes", "json"], rows)


def _is_made_for(label: str, task: str) -> bool:
    """Whether runs were trained for a task."""
    return "-shot" in task and all((part in label) == (part in task) for part in ("5-shot", "20-way"))


def _runs(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """place, record; the shortest first."""
    places = [f"{folder}/{path.name}" for path in sorted((RESULTS / folder).glob("*.json"))]
    found = zip(places, records(RESULTS, f"{folder}/*"), strict=True)
    return sorted(found, key=lambda each: _made(each[1]))


def _made(run: dict[str, Any]) -> int:
    return int(run.get("stopped_at", run["config"]["updates"]))


def _row(label: str, task: str, place: str, run: dict[str, Any]) -> list[str]:
    planned, cell = run["config"]["updates"], run["test"][NORM][task]
    updates = f"{_made(run):,}" + (f" of {planned:,}" if planned != _made(run) else "")
    rate = "falls to 0" if run["config"].get("schedule") == "cosine" else "constant"
    return [label, updates, rate, in_percent(cell), f"{asked_by(NORM, run['questions']):,}", f"[json](../results/{place})"]


def factors() -> str:
    """Short runs of Prototypical Networks on mini-ImageNet, judged by validation classes."""
    rows = []
    for task, prefix in (("5-shot 5-way", ""), ("1-shot 5-way", "1-shot-")):
        pattern = f"{prefix}[0-9].*json"
        for path in sorted(FACTORS.glob(pattern), key=lambda path: float(path.stem.removeprefix(prefix))):
            [run], factor = records(RESULTS, f"trials/{FACTORS.name}/{path.stem}"), float(path.stem.removeprefix(prefix))
            figures = in_percent(run["validation"][NORM][task], 1)
            link = f"[json](../results/trials/{FACTORS.name}/{path.name})"
            rows.append([task, FACTORS_IN_WORDS.get(factor, f"{factor:g}"), f"{run['config']['updates']:,}", figures, link])
    return markdown(["trained and judged by", "factor", "updates", "accuracy", "json"], rows)
