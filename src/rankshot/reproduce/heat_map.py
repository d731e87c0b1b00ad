"""Objective by metric as a picture: how well each does by each."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from .saving_figures import save
from .studies import METRICS, STUDIED
from .study_tables import objectives_measured


def draw_objectives(results: Path, folder: Path) -> list[Path]:
    """What was written: nothing for a data set without json yet."""
    measured = {name: objectives_measured(results, name) for name in STUDIED}
    return [draw(figures, folder / f"objectives-{name}.png") for name, figures in measured.items() if figures]


def draw(figures: dict[str, list[float]], path: Path) -> Path:
    """A row an objective, a column a metric. Each metric has a scale of its own: the best of a column is dark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shades = list(zip(*map(scaled, zip(*figures.values(), strict=True)), strict=True))
    figure = Figure(figsize=(7.2, 1.2 + 0.36 * len(figures)), layout="constrained")
    FigureCanvasAgg(figure)
    panel: Any = figure.add_subplot()
    panel.imshow(shades, cmap="Blues", vmin=0, vmax=2, aspect="auto")
    for row, values in enumerate(figures.values()):
        for column, value in enumerate(values):
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8)
    panel.set_xticks(range(len(METRICS)), METRICS.values(), fontsize=8)
    panel.set_yticks(range(len(figures)), list(figures), fontsize=8)
    figure.supxlabel("judged by, in %; each column has its own shades, and white is far behind its best", fontsize=8)
    panel.set_ylabel("objective", fontsize=8)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    return save(figure, path)


def scaled(column: tuple[float, ...]) -> list[float]:
    """From 1, the best, down to 0: twice as far from the best as the median is, or further.

    So an objective that fails does not make all others look alike.

    >>> scaled((20.0, 30.0, 25.0, 28.0)), scaled((20.0,))
    ([0.0, 1.0, 0.2857142857142857, 0.7142857142857143], [1.0])
    """
    best = max(column)
    far = 2 * median(best - value for value in column)
    return [max(0.0, 1 - (best - value) / far) if far else float(value == best) for value in column]
