"""The paper's figures, drawn from the json files of runs and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from textwrap import fill
from typing import Any, NamedTuple

from .heat_map import draw_objectives
from .plan import ALPHAS, BATCH_SIZES, METHODS, batch_run
from .published import TITLES
from .saving_figures import save
from .tables import Record, records
from .variant_chart import draw_studies

Lines = Mapping[str, Sequence[Record]]  # a line's name -> its points; none where there is no run yet
COLOURS = {"map-dlm": "#c8452c", "map-ssvm": "#e09b2d", "siamese": "#35618f", "smooth-ap": "#6b8f47"}
SHADES = ("#f2c14e", "#e0812d", "#c8452c", "#7d1d3f")  # of values that have an order
LAST = 5  # validations, of which a mean is taken: one alone goes up and down by chance
LETTERS = 50  # of a note, in the width of a panel
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
        {TITLES[method]: runs[min(runs)]["curve"] for method, runs in by_method.items() if runs}, learning_tasks(name)
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
    lines: dict[str, Sequence[Record]] = {}
    for alpha in ALPHAS:
        patterns = [f"{name}/alpha/{method}-{alpha:g}/0"]
        if alpha == 10:
            patterns = [f"{name}/curves/{method}", f"{name}/paper/{method}/0"]
        curves = [record["curve"] for pattern in patterns for record in records(results, pattern) if record["curve"]]
        lines[f"alpha {alpha:g}"] = curves[0] if curves else []
    tasks = ("1-shot 5-way", "5-shot 5-way") if name == "mini-imagenet" else ("1-shot 5-way", "1-shot 20-way")
    retrieval = "retrieval 16-way" if name == "mini-imagenet" else "retrieval 20-way"
    return Chart(lines, [retrieval, *tasks], note=not_yet(lines))


def batch_curves(results: Path, method: str) -> Chart:
    """Learning efficiency on mini-ImageNet: batches of several sizes, always of eight classes."""
    lines = {f"{TITLES[method]}, |B| = {size}": curve for size, curve in _curves_of_sizes(results, method).items()}
    return Chart(lines, ["1-shot 5-way", "retrieval 16-way"], note=not_yet(lines))


def not_yet(lines: Lines) -> str:
    """Names those without points.

    >>> not_yet({"alpha 1": [], "alpha 3": [{"update": 500}], "alpha 10": []})
    'not measured yet: alpha 1, alpha 10'
    """
    absent = ", ".join(name for name, points in lines.items() if not points)
    return f"not measured yet: {absent}" if absent else ""


def batch_sizes(results: Path) -> Chart:
    """All methods against the size of the batch: where they are when the shortest run ends.

    A point is the mean of the last validations, `LAST` of them, up to the last update that all runs have. A method of one
    size is left out: a single point shows nothing that the others could be compared with.
    """
    tasks = ["1-shot 5-way", "retrieval 16-way"]
    by_method = {method: _curves_of_sizes(results, method) for method in METHODS}
    curves = {method: {size: curve for size, curve in found.items() if curve} for method, found in by_method.items()}
    several = {method: by_size for method, by_size in curves.items() if len(by_size) > 1}
    if not several:
        return Chart({}, tasks, SIZE)
    end = min(curve[-1]["update"] for by_size in several.values() for curve in by_size.values())
    lines: dict[str, list[Record]] = {}
    updates: set[int] = set()
    for method, by_size in several.items():
        points = lines[TITLES[method]] = []
        for size, curve in by_size.items():
            last = [point for point in curve if point["update"] <= end][-LAST:]
            updates.update(point["update"] for point in last)
            points.append({SIZE: size, **{task: {"mean": mean(point[task]["mean"] for point in last)} for task in tasks}})
    absent = {method: [str(size) for size in BATCH_SIZES if size not in found] for method, found in curves.items()}
    told = ", ".join(f"{TITLES[method]} ({', '.join(sizes)})" for method, sizes in absent.items() if sizes)
    note = f"mean of validations at {min(updates):,} to {max(updates):,} updates"
    return Chart(lines, tasks, SIZE, f"{note}\nnot measured yet: {told}" if told else note)


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
    by_name = {TITLES[method]: colour for method, colour in COLOURS.items()}
    unit, axis = AXES[chart.along]
    marks = {"marker": "o", "markersize": 4} if chart.along == SIZE else {}
    legend: dict[str, Any] = {}
    for at, task in enumerate(chart.tasks):
        panel: Any = figure.add_subplot(1, len(chart.tasks), at + 1)
        for number, (label, points) in enumerate(chart.lines.items()):
            if measured := [(point[chart.along] / unit, 100 * point[task]["mean"]) for point in points if task in point]:
                colour = by_name.get(label, SHADES[number % len(SHADES)])
                (legend[label],) = panel.plot(*zip(*measured, strict=True), color=colour, linewidth=1.4, **marks)
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
    panel.legend(  # of all panels: not every line has every task
        [legend[label] for label in chart.lines if label in legend],
        [label for label in chart.lines if label in legend],
        fontsize=7.5,
        frameon=False,
        loc="lower right",
    )
    if chart.note:
        lines = [fill(line, LETTERS * len(chart.tasks)) for line in chart.note.split("\n")]
        figure.supxlabel("\n".join(lines), fontsize=7.5)
    return save(figure, path)


def _look_at_the_end(panel: Any, curves: Sequence[Sequence[float]]) -> None:
    """What is worth seeing is where the curves end up, not how they rise in the first few hundred updates."""
    if not curves:
        return
    lowest = min(value for curve in curves for value in curve[len(curve) // 2 :])
    top = max(value for curve in curves for value in curve)
    margin = 0.5 * (top - lowest) or 1.0
    panel.set_ylim(lowest - margin, top + 0.2 * margin)
