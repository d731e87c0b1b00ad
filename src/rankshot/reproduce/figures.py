"""The paper's figures, drawn from the json files of runs and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from .heat_map import draw_objectives
from .plan import ALPHAS, BATCH_SIZES, METHODS, batch_run
from .published import NAMES
from .saving_figures import save
from .tables import Record, records
from .variant_chart import draw_studies

Lines = Mapping[str, Sequence[Record]]  # a line's name -> its points; none where there is no run yet
COLOURS = {"map-dlm": "#c8452c", "map-ssvm": "#e09b2d", "siamese": "#35618f", "smooth-ap": "#6b8f47"}
SHADES = ("#f2c14e", "#e0812d", "#c8452c", "#7d1d3f")  # of values that have an order
LAST = 5  # validations, of which a mean is taken: one alone goes up and down by chance
SIZE = "batch size"
AXES = {"update": (1000, "thousand updates"), SIZE: (1, "images in a batch, of 8 classes")}  # its unit, its name


class Chart(NamedTuple):
    """One panel a task, one line a name.

    lines  every point has a value of `along`, and a mean of each task that was measured
    along  what is to the right, one of AXES
    note   what the values are, below the axes
    """

    lines: Lines
    tasks: Sequence[str]
    along: str = "update"
    note: str = ""


def learning_curves(results: Path, name: str) -> Chart:
    """Validation while learning with the paper's recipe, of the first seed."""
    by_method = {method: learning_runs(results, name, method) for method in METHODS}
    return Chart(
        {NAMES[method]: runs[min(runs)]["curve"] for method, runs in by_method.items() if runs}, learning_tasks(name)
    )


def learning_tasks(name: str) -> list[str]:
    """What is validated while learning: classification and retrieval of both ways."""
    ways = (5, 16) if name == "mini-imagenet" else (5, 20)
    return [f"{task} {way}-way" for task in ("1-shot", "retrieval") for way in ways]


def learning_runs(results: Path, name: str, method: str) -> dict[int, Record]:
    """Seed -> the run of it that was validated while it learned, with the paper's recipe."""
    found = records(results, f"{name}/curves/{method}") or records(results, f"{name}/paper/{method}/*")
    return {record["config"]["seed"]: record for record in found if record["curve"]}


def alpha_curves(results: Path, name: str, method: str) -> Chart:
    """One of the mAP methods with several values of alpha."""
    lines = {}
    for alpha in ALPHAS:
        patterns = [f"{name}/alpha/{method}-{alpha:g}/0"]
        if alpha == 10:
            patterns = [f"{name}/curves/{method}", f"{name}/paper/{method}/0"]
        curves = [record["curve"] for pattern in patterns for record in records(results, pattern) if record["curve"]]
        lines[f"alpha {alpha:g}"] = curves[0] if curves else []
    if name == "mini-imagenet":
        return Chart(lines, ["retrieval 16-way", "1-shot 5-way", "5-shot 5-way"])
    return Chart(lines, ["retrieval 20-way", "1-shot 5-way", "1-shot 20-way"])


def batch_curves(results: Path, method: str) -> Chart:
    """Learning efficiency on mini-ImageNet: batches of several sizes, always of eight classes."""
    lines = {f"{NAMES[method]}, |B| = {size}": curve for size, curve in _curves_of_sizes(results, method).items()}
    return Chart(lines, ["1-shot 5-way", "retrieval 16-way"])


def batch_sizes(results: Path) -> Chart:
    """All methods against the size of the batch: where they are when the shortest run ends.

    A point is the mean of the last validations, `LAST` of them, up to the last update that all runs have.
    """
    tasks = ["1-shot 5-way", "retrieval 16-way"]
    curves = {method: _curves_of_sizes(results, method) for method in METHODS}
    ends = [curve[-1]["update"] for by_size in curves.values() for curve in by_size.values() if curve]
    if not ends:
        return Chart({}, tasks, SIZE)
    lines = {}
    updates: set[int] = set()
    for method, by_size in curves.items():
        points = []
        for size, curve in by_size.items():
            last = [point for point in curve if point["update"] <= min(ends)][-LAST:]
            updates.update(point["update"] for point in last)
            means = {task: {"mean": mean(point[task]["mean"] for point in last)} for task in tasks if last}
            points += [{SIZE: size, **means}] if means else []
        lines[NAMES[method]] = points
    return Chart(lines, tasks, SIZE, f"mean of validations at {min(updates):,} to {max(updates):,} updates")


def _curves_of_sizes(results: Path, method: str) -> dict[int, Sequence[Record]]:
    runs = {size: records(results, batch_run(method, size)) for size in BATCH_SIZES}
    return {size: found[0]["curve"] if found else [] for size, found in runs.items()}


FIGURES: dict[str, Callable[[Path], Chart]] = {
    "curves-omniglot": lambda results: learning_curves(results, "omniglot"),
    "curves-mini-imagenet": lambda results: learning_curves(results, "mini-imagenet"),
    "batch-sizes": batch_sizes,
    "batch-sizes-map-dlm": lambda results: batch_curves(results, "map-dlm"),
    "batch-sizes-siamese": lambda results: batch_curves(results, "siamese"),
    "alpha-omniglot": lambda results: alpha_curves(results, "omniglot", "map-dlm"),
    "alpha-mini-imagenet": lambda results: alpha_curves(results, "mini-imagenet", "map-dlm"),
    "alpha-ssvm-omniglot": lambda results: alpha_curves(results, "omniglot", "map-ssvm"),
    "alpha-ssvm-mini-imagenet": lambda results: alpha_curves(results, "mini-imagenet", "map-ssvm"),
}


def draw_all(results: Path, folder: Path) -> list[Path]:
    """Every figure that has something to compare; returns what was written."""
    charts = {name: chart_of(results) for name, chart_of in FIGURES.items()}
    drawn = [
        draw(chart, folder / f"{name}.png")
        for name, chart in charts.items()
        if sum(bool(points) for points in chart.lines.values()) > 1
    ]
    return [*drawn, *draw_objectives(results, folder), *draw_studies(results, folder)]


def draw(chart: Chart, path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(chart.tasks), 2.9), layout="constrained")
    FigureCanvasAgg(figure)
    by_name = {NAMES[method]: colour for method, colour in COLOURS.items()}
    unit, axis = AXES[chart.along]
    marks = {"marker": "o", "markersize": 4} if chart.along == SIZE else {}
    for at, task in enumerate(chart.tasks):
        panel: Any = figure.add_subplot(1, len(chart.tasks), at + 1)
        for number, (label, points) in enumerate(chart.lines.items()):
            if measured := [(point[chart.along] / unit, 100 * point[task]["mean"]) for point in points if task in point]:
                colour = by_name.get(label, SHADES[number % len(SHADES)])
                panel.plot(*zip(*measured, strict=True), label=label, color=colour, linewidth=1.4, **marks)
        panel.set_title(f"{task}, {'mAP' if task.startswith('retrieval') else 'accuracy'} in %", fontsize=8.5)
        panel.set_xlabel(axis, fontsize=8)
        panel.tick_params(labelsize=7.5)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        if chart.along == SIZE:
            panel.set_xscale("log", base=2)
            panel.set_xticks(BATCH_SIZES, labels=map(str, BATCH_SIZES))
        else:
            _look_at_the_end(panel, [line.get_ydata() for line in panel.lines])
    panel.legend(fontsize=7.5, frameon=False, loc="lower right")
    if chart.note:
        figure.supxlabel(chart.note, fontsize=7.5)
    return save(figure, path)


def _look_at_the_end(panel: Any, curves: Sequence[Sequence[float]]) -> None:
    """What is worth seeing is where the curves end up, not how they rise in the first few hundred updates."""
    lowest = min(value for curve in curves for value in curve[len(curve) // 2 :])
    top = max(value for curve in curves for value in curve)
    margin = 0.5 * (top - lowest) or 1.0
    panel.set_ylim(lowest - margin, top + 0.2 * margin)
