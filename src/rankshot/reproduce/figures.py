"""The paper's figures, drawn from the json files of runs and from nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankshot.files import check_no_link, write_whole

from .plan import ALPHAS, BATCH_SIZES, METHODS
from .published import NAMES
from .tables import Record, records

Lines = Mapping[str, Sequence[Record]]  # a line's name -> the points of its curve
COLOURS = {"map-dlm": "#c8452c", "map-ssvm": "#e09b2d", "siamese": "#35618f", "smooth-ap": "#6b8f47"}
SHADES = ("#f2c14e", "#e0812d", "#c8452c", "#7d1d3f")  # of values that have an order


def learning_curves(results: Path, name: str) -> tuple[Lines, Sequence[str]]:
    """Validation while learning with the paper's recipe: classification and retrieval of both ways."""
    lines = {}
    for method in METHODS:
        if runs := records(results, f"{name}/curves/{method}") or records(results, f"{name}/paper/{method}/0"):
            lines[NAMES[method]] = runs[0]["curve"]
    ways = (5, 16) if name == "mini-imagenet" else (5, 20)
    return lines, [f"{task} {way}-way" for task in ("1-shot", "retrieval") for way in ways]


def alpha_curves(results: Path, name: str) -> tuple[Lines, Sequence[str]]:
    """mAP-DLM with several values of alpha."""
    lines = {}
    for alpha in ALPHAS:
        patterns = [f"{name}/alpha/map-dlm-{alpha:g}/0"]
        if alpha == 10:
            patterns = [f"{name}/curves/map-dlm", f"{name}/paper/map-dlm/0"]
        runs = [record for pattern in patterns for record in records(results, pattern) if record["curve"]]
        if runs:
            lines[f"alpha {alpha:g}"] = runs[0]["curve"]
    if name == "mini-imagenet":
        return lines, ["retrieval 16-way", "1-shot 5-way", "5-shot 5-way"]
    return lines, ["retrieval 20-way", "1-shot 5-way", "1-shot 20-way"]


def batch_curves(results: Path, method: str) -> tuple[Lines, Sequence[str]]:
    """Learning efficiency on mini-ImageNet: batches of several sizes, always of eight classes."""
    lines = {}
    for size in BATCH_SIZES:
        pattern = f"mini-imagenet/paper/{method}/0" if size == BATCH_SIZES[-1] else f"mini-imagenet/batch/{method}-{size}"
        if runs := records(results, pattern):
            lines[f"{NAMES[method]}, |B| = {size}"] = runs[0]["curve"]
    return lines, ["1-shot 5-way", "retrieval 16-way"]


FIGURES: dict[str, Callable[[Path], tuple[Lines, Sequence[str]]]] = {
    "curves-omniglot": lambda results: learning_curves(results, "omniglot"),
    "curves-mini-imagenet": lambda results: learning_curves(results, "mini-imagenet"),
    "batch-sizes-map-dlm": lambda results: batch_curves(results, "map-dlm"),
    "batch-sizes-siamese": lambda results: batch_curves(results, "siamese"),
    "alpha-omniglot": lambda results: alpha_curves(results, "omniglot"),
    "alpha-mini-imagenet": lambda results: alpha_curves(results, "mini-imagenet"),
}


def draw_all(results: Path, folder: Path) -> list[Path]:
    """Every figure that has something to show; returns what was written."""
    written = []
    for name, lines_of in FIGURES.items():
        lines, tasks = lines_of(results)
        lines = {label: curve for label, curve in lines.items() if curve}
        if len(lines) > 1:
            check_no_link(folder)
            folder.mkdir(parents=True, exist_ok=True)
            written.append(draw(lines, tasks, folder / f"{name}.png"))
    return written


def draw(lines: Lines, tasks: Sequence[str], path: Path) -> Path:
    """One panel a task, one line a name."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(tasks), 2.9), layout="constrained")
    FigureCanvasAgg(figure)
    by_name = {NAMES[method]: colour for method, colour in COLOURS.items()}
    for at, task in enumerate(tasks):
        panel: Any = figure.add_subplot(1, len(tasks), at + 1)
        for number, (label, curve) in enumerate(lines.items()):
            points = [(point["update"] / 1000, 100 * point[task]["mean"]) for point in curve if task in point]
            colour = by_name.get(label, SHADES[number % len(SHADES)])
            panel.plot(*zip(*points, strict=True), label=label, color=colour, linewidth=1.4)
        panel.set_title(f"{task}, {'mAP' if task.startswith('retrieval') else 'accuracy'} in %", fontsize=8.5)
        panel.set_xlabel("thousand updates", fontsize=8)
        panel.tick_params(labelsize=7.5)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        # What is worth seeing is where the curves end up, not how they rise in the first few hundred updates.
        values = [
            100 * point[task]["mean"] for curve in lines.values() for point in curve[len(curve) // 2 :] if task in point
        ]
        top = max(100 * point[task]["mean"] for curve in lines.values() for point in curve if task in point)
        margin = 0.5 * (top - min(values)) or 1.0
        panel.set_ylim(min(values) - margin, top + 0.2 * margin)
    panel.legend(fontsize=7.5, frameon=False, loc="lower right")
    content = io.BytesIO()
    figure.savefig(content, dpi=160, metadata={"Software": None})
    write_whole(path, content.getvalue())
    return path
