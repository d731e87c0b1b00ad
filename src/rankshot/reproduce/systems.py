"""Every system under one protocol: one run each with its paper's settings, and a table of them all.

Systems that train for a number of shots, or of classes, have a run for each: a row of the table takes each column from the
run that was made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankshot.methods import METHODS as REGISTERED
from rankshot.methods import settings_for
from rankshot.methods.method import has_loop, presets_of
from rankshot.training import TrainConfig

from .job import Questions, Run
from .plan import BENCHMARKS, METHODS, RUNNING, SEEDS
from .published import COLUMNS, DIGITS, PUBLISHED, TITLES
from .tables import NORM, Record, asked_by, markdown, means, seeds_in, seeds_told

# How the runs of slow systems differ from their presets. Some have fewer updates than in their papers, for want of time.
# MAML's learning rate falls to 0 where the last network is kept: at a constant rate, that may happen to be a bad one. What
# learns every episode anew validates seldom.
FALLS: dict[str, Any] = {"schedule": "cosine"}
UNLIKE_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "maml": {
        "omniglot": FALLS,
        "omniglot-20-way": FALLS,
        "omniglot-5-shot": {"updates": 30_000, **FALLS},
        "omniglot-20-way-5-shot": {"updates": 12_000, **FALLS},
        "mini-imagenet": {"validate_every": 5_000},
        "mini-imagenet-5-shot": {"updates": 20_000, "validate_every": 2_500, **FALLS},
    },
    "meta-lstm": {
        "omniglot": {"updates": 6_000},
        "omniglot-5-shot": {"updates": 10_000},
        "mini-imagenet": {"validate_every": 2_500},
    },
    # more updates than others on mini-ImageNet, for it learns slowly; it compares every pair anew
    "arc": {"omniglot": {"updates": 60_000}, "mini-imagenet": {"updates": 60_000, "validate_every": 5_000}},
}
# ARC compares every query with every labelled image: 30,000 pairs in an episode of 20 classes with five images each.
ASKED_LESS: dict[tuple[str, str], dict[str, Any]] = {("omniglot", "arc"): {"episodes": 1_000}}
ANSWERERS = ("maml", "meta-lstm", "arc")  # they have no embeddings, and to ask them takes long
ONE_SEED = ("maml", "meta-lstm", "arc")  # which take longest
FAR = 3.0  # points from the published figure: further away needs a reason


def presets(name: str, method: str) -> dict[str, str]:
    """label -> preset of every run of a system: its first, and others for so many shots or classes."""
    return {f"{method}{preset.removeprefix(name)}": preset for preset in presets_of(method) if preset.startswith(name)}


def labels(name: str, method: str) -> list[str]:
    """The runs that a row of the table is made of."""
    return [method] if method in METHODS else list(presets(name, method))


def label_for(name: str, method: str, task: str) -> str:
    """The run that was made for a task, or the nearest to it."""
    if task.startswith("retrieval") or method in METHODS:
        return method

    def fits(label: str) -> tuple[bool, ...]:
        return tuple((part in label) == (part in task) for part in ("5-shot", "20-way"))

    return max(presets(name, method), key=fits)


def systems(name: str) -> list[Run]:
    """The runs of one data set, seed by seed; those of the paper's own tables are rows there already.

    A system that the paper has a row of has three seeds, unless it takes hours.
    """
    return [
        Run(
            f"{name}/systems/{label}/{seed}",
            config_of(name, method, label, seed=seed),
            asked_of(name, method, label),
            validation_norms=(),
        )
        for seed in SEEDS
        for method in TITLES
        if method not in METHODS and seed in seeds_of(name, method)
        for label in presets(name, method)
    ]


def config_of(name: str, method: str, label: str, **changes: Any) -> TrainConfig:
    """Of a run of a system: its preset, on the classes that the paper's methods learn from."""
    benchmark, preset = BENCHMARKS[name], presets(name, method)[label]
    like = benchmark.paper["map-dlm"]
    held: dict[str, Any] = {key: like[key] for key in ("split", "validate_every") if key in like}
    how = {"compile": True} if has_loop(REGISTERED[method].make) else {}
    settings = {**settings_for(method, preset), **held, **how, **UNLIKE_PRESETS.get(method, {}).get(preset, {}), **changes}
    return benchmark.base.changed(**settings)


def asked_of(name: str, method: str, label: str) -> Questions:
    """The columns of the table; of a system without embeddings, those that its row takes from this run."""
    tasks = COLUMNS[name]
    if method in ANSWERERS:
        tasks = tuple(task for task in tasks if "-shot" in task and label_for(name, method, task) == label)
    return replace(RUNNING, tasks=tasks, **ASKED_LESS.get((name, method), {}))


def seeds_of(name: str, method: str) -> tuple[int, ...]:
    """Those that a system is trained with."""
    return SEEDS if method in PUBLISHED[name] and method not in ONE_SEED else SEEDS[:1]


def row(results: Path, name: str, method: str, norm: str) -> list[float | None]:
    """A system's figure in every column, in percent; None where it has none."""
    cells: list[float | None] = []
    for task in COLUMNS[name]:
        runs = runs_of(results, name, label_for(name, method, task), norm)
        has_it = bool(runs) and task in runs[0]["test"][norm]
        cells.append(means(runs, norm, [task])[0] if has_it else None)
    return cells


def runs_of(results: Path, name: str, label: str, norm: str = NORM) -> list[Record]:
    folder = "paper" if label in METHODS else "systems"
    return seeds_in(results, f"{name}/{folder}/{label}", norm)


def updates_told(results: Path, name: str, method: str) -> str:
    """How long each run of a system was, and how long its authors' is where that is known; whose rate fell to 0."""
    lengths = []
    for label, preset in presets(name, method).items():
        asked = presets_of(method)[preset].get("updates")
        for config in (record["config"] for record in runs_of(results, name, label)):
            of = f" of {asked:,}" if asked else ""
            falls = ", learning rate falls to 0" if config["schedule"] == "cosine" else ""
            lengths.append(f"{config['updates']:,}{of} ({label}{falls})")
    return "; ".join(lengths)


def stopped_early(results: Path, name: str, method: str) -> list[str]:
    """The runs of a system that were stopped before the end of the plan."""
    told = []
    for label in labels(name, method):
        runs = [record for record in runs_of(results, name, label) if "cut_from" in record]
        if runs:
            made = sorted({record["config"]["updates"] for record in runs})
            after = f"{made[0]:,}" if len(made) == 1 else f"{made[0]:,} to {made[-1]:,}"
            told.append(f"{label} after {after} of {runs[0]['cut_from']:,} updates")
    return told


def how_measured(results: Path, name: str, methods: Iterable[str], norm: str) -> str:
    """How many seeds and episodes the figures of each system have, those of most systems first."""
    alike: dict[str, list[str]] = {}
    for method in methods:
        runs = [runs_of(results, name, label, norm) for label in labels(name, method)]
        fewest = min(filter(None, runs), key=len)
        episodes = min(asked_by(norm, record["questions"]) for found in runs for record in found)
        alike.setdefault(f"{seeds_told(fewest)} and {episodes:,} episodes", []).append(TITLES[method])
    groups = sorted(alike.items(), key=lambda group: -len(group[1]))
    return " ".join(f"{how[0].upper()}{how[1:]} per task: {'; '.join(those)}." for how, those in groups)


def far_from_published(name: str, method: str, here: Sequence[float | None]) -> list[str]:
    """The figures that need a reason."""
    published = PUBLISHED[name].get(method, (None,) * len(here))
    return [
        f"{TITLES[method]} {measured - expected:+.1f} ({column})"
        for column, expected, measured in zip(COLUMNS[name], published, here, strict=True)
        if expected is not None and measured is not None and abs(measured - expected) > FAR
    ]


def systems_table(results: Path, name: str, norm: str) -> str | None:
    """Every system: as published, and here; then what a reader must know about it."""
    rows = {method: row(results, name, method, norm) for method in TITLES}
    measured = {method: here for method, here in rows.items() if any(figure is not None for figure in here)}
    if not measured:
        return None
    body = []
    for method, here in measured.items():
        for label, cells in (("as published", PUBLISHED[name].get(method)), ("here", here)):
            if cells is not None:
                figures = ("–" if figure is None else f"{figure:.{DIGITS[name]}f}" for figure in cells)
                body.append([f"{TITLES[method]}, {label}", *figures])
    notes = [f"Means in %, batch norm with {norm} statistics.", how_measured(results, name, measured, norm)]
    for method in (candidate for candidate in ONE_SEED if candidate in measured):
        notes.append(f"Updates of {TITLES[method]}, of its authors' where known: {updates_told(results, name, method)}.")
    if stopped := [text for method in measured for text in stopped_early(results, name, method)]:
        notes.append(f"Stopped early: {'; '.join(stopped)}.")
    if far := [text for method, here in measured.items() for text in far_from_published(name, method, here)]:
        notes.append(f"More than {FAR:.0f} points from the published figure: {', '.join(far)}.")
    if missing := [label for method in TITLES for label in labels(name, method) if not runs_of(results, name, label, norm)]:
        notes.append(f"Not run yet: {', '.join(missing)}.")
    return "\n\n".join([markdown(["", *COLUMNS[name]], body), " ".join(notes)])
