"""Variants of one recipe side by side: a panel a task, a line a variant, a point a seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from .published import COLUMNS
from .saving_figures import save
from .studies import STUDIED, study_folder
from .tables import NORM, Record, means, seeds_in

STUDIES = ("signs", "batches")  # objectives have their heat map
USUAL, OTHER = "#35618f", "#c8452c"
FAR = 10  # times the median distance from what a point is compared with: drawn at the edge


class Line(NamedTuple):
    """A variant in words, its seeds, and the seeds of what it is compared with: of itself, perhaps, or none yet."""

    words: str
    runs: list[Record]
    base: list[Record]


def draw_studies(results: Path, folder: Path) -> list[Path]:
    """What was written: nothing for a study of which there is no json yet but that of the paper's recipe."""
    measured = {(study, name): lines_measured(results, name, study) for name in STUDIED for study in STUDIES}
    return [
        draw(lines, COLUMNS[name], folder / f"{study}-{name}.png")
        for (study, name), lines in measured.items()
        if len(lines) > 1
    ]


def lines_measured(results: Path, name: str, study: str) -> list[Line]:
    """The first, which changes nothing, is that of the paper's recipe."""
    studied = STUDIED[name]

    def seeds(variant: str) -> list[Record]:
        return seeds_in(results, study_folder(name, study, variant), NORM)

    lines = [
        Line(words, seeds(variant), seeds(studied.base_of(study, variant)))
        for variant, (words, _) in studied.variants(study).items()
    ]
    return [line for line in lines if line.runs]


def draw(lines: Sequence[Line], tasks: Sequence[str], path: Path) -> Path:
    """In % with 95 % intervals over episodes. Dotted: the mean of what a line is compared with, itself in blue."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 + 1.5 * len(tasks), 0.9 + 0.3 * len(lines)), layout="constrained")
    FigureCanvasAgg(figure)
    for at, task in enumerate(tasks):
        panel: Any = figure.add_subplot(1, len(tasks), at + 1)
        centres = [means(line.base or line.runs, NORM, [task])[0] for line in lines]
        far = reach(
            [
                means([run], NORM, [task])[0] - centre
                for line, centre in zip(lines, centres, strict=True)
                for run in line.runs
            ]
        )
        for row, (line, centre) in enumerate(zip(lines, centres, strict=True)):
            draw_line(panel, row, line, task, centre, far)
        words = [line.words if line.base else f"{line.words}\n(compared with nothing yet)" for line in lines]
        panel.set_yticks(range(len(lines)), words if at == 0 else [], fontsize=8)
        panel.set_ylim(len(lines) - 0.5, -0.5)
        panel.set_title(task, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.tick_params(axis="y", labelsize=8, length=0)
        panel.grid(axis="x", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "accuracy or mAP in %; a point a seed, with its 95 % interval over episodes; "
        "a triangle: the mean of seeds further out;\ndotted: what a line is compared with",
        fontsize=7.5,
    )
    return save(figure, path)


def draw_line(panel: Any, row: int, line: Line, task: str, centre: float, far: float) -> None:
    """A point a seed; those that are further from the centre than `far` are one triangle at the edge, with their mean.

    centre   the mean of what the line is compared with; where that is not there yet, of its own seeds
    """
    colour = USUAL if line.runs == line.base else OTHER
    further = []
    for run in line.runs:
        value, interval = (100 * run["test"][NORM][task][part] for part in ("mean", "interval"))
        if abs(value - centre) > far:
            further.append(value)
        else:
            panel.errorbar([value], [row], xerr=[interval], fmt="o", markersize=3.5, color=colour, linewidth=1)
    if further:
        is_less = mean(further) < centre
        edge, side, words = (centre - far, "left", "  {:.0f}") if is_less else (centre + far, "right", "{:.0f}  ")
        panel.plot([edge], [row], marker="<" if is_less else ">", markersize=4, color=colour)
        panel.text(edge, row, words.format(mean(further)), fontsize=6, va="center", ha=side)
    if line.base:
        panel.plot([centre, centre], [row - 0.5, row + 0.5], color=USUAL, linewidth=0.8, linestyle=":")


def reach(distances: Sequence[float]) -> float:
    """How far from what it is compared with a point is drawn: few that are far must not make all others look alike.

    >>> reach([0.1, -0.3, 0.2, -16.0]), reach([0.0, 0.0])
    (2.5, inf)
    """
    usual = median(map(abs, distances))
    return FAR * usual if usual else math.inf
