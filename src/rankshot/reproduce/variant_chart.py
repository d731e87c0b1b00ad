"""Variants of one recipe side by side: a panel a task, a line a variant, a point a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .published import COLUMNS
from .saving_figures import save
from .studies import STUDIED, study_folder
from .tables import NORM, Record, seeds_in

STUDIES = ("signs", "batches")  # objectives have their heat map
USUAL, OTHER = "#35618f", "#c8452c"


def draw_studies(results: Path, folder: Path) -> list[Path]:
    """What was written: nothing for a study of which there is no json yet but that of the paper's recipe."""
    measured = {(study, name): variants_measured(results, name, study) for name in STUDIED for study in STUDIES}
    return [
        draw(variants, COLUMNS[name], folder / f"{study}-{name}.png")
        for (study, name), variants in measured.items()
        if len(variants) > 1
    ]


def variants_measured(results: Path, name: str, study: str) -> dict[str, list[Record]]:
    """Variant, in words -> its seeds. The first, which changes nothing, is that of the paper's recipe."""
    variants = STUDIED[name].variants(study)
    found = {words: seeds_in(results, study_folder(name, study, variant), NORM) for variant, (words, _) in variants.items()}
    return {words: runs for words, runs in found.items() if runs}


def draw(variants: Mapping[str, Sequence[Record]], tasks: Sequence[str], path: Path) -> Path:
    """In % with 95 % intervals over episodes; the first variant has a dotted line through the mean of its seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 + 1.5 * len(tasks), 0.9 + 0.3 * len(variants)), layout="constrained")
    FigureCanvasAgg(figure)
    for at, task in enumerate(tasks):
        panel: Any = figure.add_subplot(1, len(tasks), at + 1)
        for row, runs in enumerate(variants.values()):
            cells = [run["test"][NORM][task] for run in runs]
            means, intervals = ([100 * cell[part] for cell in cells] for part in ("mean", "interval"))
            colour = OTHER if row else USUAL
            panel.errorbar(means, [row] * len(means), xerr=intervals, fmt="o", markersize=3.5, color=colour, linewidth=1)
            if row == 0:
                panel.axvline(sum(means) / len(means), color=USUAL, linewidth=0.8, linestyle=":")
        panel.set_yticks(range(len(variants)), list(variants) if at == 0 else [], fontsize=8)
        panel.set_ylim(len(variants) - 0.5, -0.5)
        panel.set_title(task, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.tick_params(axis="y", labelsize=8, length=0)
        panel.grid(axis="x", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("accuracy, or mAP of retrieval, in %", fontsize=7.5)
    return save(figure, path)
