"""The method as a drawing: every image of a batch ranks all others; and one ranking, as loss-augmented inference sees it.

Everything in it is computed: the pictures are those of the data set `glyphs`, the numbers those of `worked_example`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .saving_figures import save
from .worked_example import EPSILON, QUERY, Ranking, WorkedExample

WIDTH, HEIGHT = 900, 704  # the units of everything below: pixels, when it is shown this wide
SHARPNESS = 2  # real pixels to one of these
INK, PALE, FAINT, LINE = "#22262b", "#5d646c", "#a2a7ad", "#d3d7db"
PAPER, PANEL = "#ffffff", "#f4efe4"
CLASSES = ("#c8452c", "#35618f", "#5f8a3c")
STEP, SIDE = 38, 32  # from one picture to the next, and how large one is
TOP = 104  # of the first row
QUERY_X, FIRST_X, BARS_X, BAR = 22, 80, 508, 56
COLUMNS_X = (682, 762, 842)  # of the three rankings; their left sides
PANEL_X = 624
LESSON = """F tells how well an order fits the
cosines; L = 1 − AP. Learning lowers
F of the loss-augmented order against
that of the predicted one (mAP-DLM)
or of the ground truth (mAP-SSVM)."""


def draw_method(path: Path) -> Path:
    """Into a PNG file, which is the same every time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), facecolor=PAPER)
    FigureCanvasAgg(figure)
    sheet = Sheet(figure)
    example = WorkedExample()
    _all_rankings(sheet, example)
    _three_rankings(sheet, example)
    return save(figure, path, dpi=100 * SHARPNESS)


class Sheet:
    """Paper with the origin at its upper left, on which pictures, words and lines are put."""

    def __init__(self, figure: Any) -> None:
        self.axes = figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
        self.axes.axis("off")

    def words(self, x: float, y: float, text: str, size: float = 12, colour: str = INK, **how: Any) -> None:
        """In the font that comes with matplotlib, whatever else is installed; `y` is the middle of the line."""
        how = {"va": "center_baseline", "family": "DejaVu Sans", **how}
        self.axes.text(x, y, text, fontsize=0.72 * size, color=colour, **how)

    def box(self, x: float, y: float, wide: float, high: float, colour: str, edge: str = "none", order: int = 1) -> None:
        from matplotlib.patches import FancyBboxPatch

        style = "round,pad=0,rounding_size=4"
        self.axes.add_patch(
            FancyBboxPatch((x, y), wide, high, boxstyle=style, facecolor=colour, edgecolor=edge, linewidth=1, zorder=order)
        )

    def line(self, xs: list[float], ys: list[float], colour: str, wide: float, order: int = 2) -> None:
        self.axes.plot(xs, ys, color=colour, linewidth=wide, solid_capstyle="round", zorder=order)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        how = {"arrowstyle": "-|>,head_width=0.22,head_length=0.4", "color": colour, "linewidth": 1.1}
        self.axes.annotate("", end, start, arrowprops={**how, "shrinkA": 0, "shrinkB": 0}, zorder=3)

    def picture(self, x: float, y: float, image: NDArray[np.uint8], colour: str | None) -> None:
        """A glyph in a frame of its colour; None: one that does not count, in grey."""
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Rectangle

        ink = np.array(to_rgb(colour or FAINT))
        ground = 1 - (1 - ink) * (0.13 if colour else 0.04)
        strength = np.clip((image / 255 - 0.15) / 0.7, 0, 1)[..., None]  # the noise of the glyphs is left out
        pixels = ground + (ink - ground) * strength
        extent = (x, x + SIDE, y + SIDE, y)
        self.axes.imshow(pixels, extent=extent, interpolation="bicubic", aspect="auto", zorder=4)
        frame: dict[str, Any] = {"facecolor": "none", "edgecolor": colour or LINE, "linewidth": 1.5 if colour else 0.7}
        self.axes.add_patch(Rectangle((x, y), SIDE, SIDE, zorder=5, **frame))


def _all_rankings(sheet: Sheet, example: WorkedExample) -> None:
    """On the left: a row a query, with its AP; below, what they make together."""
    count = len(example.images)
    sheet.words(QUERY_X, 30, "Every image of a batch is a query", 17, weight="bold")
    how = "It ranks all others by cosine similarity. In colour: what is relevant, of its own class."
    sheet.words(QUERY_X, 56, how, 12.5, PALE)
    sheet.words(QUERY_X + SIDE / 2, TOP - 18, "query", 12, PALE, ha="center")
    sheet.words(BARS_X, TOP - 18, "AP", 12, PALE)
    bottom = TOP + count * STEP - (STEP - SIDE)
    middle = TOP + QUERY * STEP + SIDE / 2
    sheet.box(QUERY_X - 8, middle - 20, PANEL_X - QUERY_X + 8, 40, PANEL)
    for place in range(1, count):
        sheet.words(FIRST_X + (place - 1) * STEP + SIDE / 2, TOP - 18, str(place), 12, PALE, ha="center")
    for query, ranking in enumerate(example.predicted):
        y, colour = TOP + query * STEP, CLASSES[int(example.labels[query])]
        sheet.picture(QUERY_X, y, example.images[query], colour)
        sheet.arrow((QUERY_X + SIDE + 5, y + SIDE / 2), (FIRST_X - 5, y + SIDE / 2), PALE)
        for place, (item, is_relevant) in enumerate(zip(ranking.items, ranking.relevant, strict=True)):
            sheet.picture(FIRST_X + place * STEP, y, example.images[item], colour if is_relevant else None)
        _bar(sheet, y + SIDE / 2, ranking.precision, colour)
    sheet.line([BARS_X, BARS_X + BAR + 42], [bottom + 11] * 2, PALE, 0.8)
    _bar(sheet, bottom + 32, example.mean_precision, INK, weight="bold")
    sheet.words(BARS_X - 12, bottom + 32, f"mAP, the mean over all {count} queries", 14, ha="right", weight="bold")
    sheet.words(BARS_X - 12, bottom + 54, "is what is optimised: all rankings at once", 12.5, PALE, ha="right")
    sheet.words(QUERY_X, bottom + 88, _sum_of(example.predicted[QUERY]), 12.5, PALE)
    sheet.words(QUERY_X, bottom + 110, "Learning is to bring what is in colour to the front, in every row.", 12.5, PALE)


def _bar(sheet: Sheet, y: float, value: float, colour: str, **how: Any) -> None:
    sheet.box(BARS_X, y - 6, BAR, 12, "#e9eaec", order=2)
    sheet.box(BARS_X, y - 6, BAR * value, 12, colour, order=3)
    sheet.words(BARS_X + BAR + 10, y, f"{value:.2f}", 13, **how)


def _sum_of(ranking: Ranking) -> str:
    """How its AP comes about."""
    places = [place for place, is_relevant in enumerate(ranking.relevant, start=1) if is_relevant]
    terms = " + ".join(f"{number}/{place}" for number, place in enumerate(places, start=1))
    return f"AP is the mean precision at the relevant images. Shaded: ({terms}) / {len(places)} = {ranking.precision:.2f}"


def _three_rankings(sheet: Sheet, example: WorkedExample) -> None:
    """On the right: one query's ranking as it is, loss-augmented, and as it should be."""
    sheet.box(PANEL_X, 12, WIDTH - PANEL_X - 12, HEIGHT - 24, PANEL)
    middle = (PANEL_X + WIDTH - 12) / 2
    sheet.words(middle, 30, "One query, three rankings", 15, ha="center", weight="bold")
    of = (example.predicted[QUERY], example.augmented[QUERY], example.truth[QUERY])
    colour = CLASSES[int(example.labels[QUERY])]
    for x, ranking, name in zip(COLUMNS_X, of, ("predicted", "loss-\naugmented", "ground\ntruth"), strict=True):
        for line, text in enumerate(reversed(name.split("\n"))):
            sheet.words(x + SIDE / 2, TOP - 18 - 16 * line, text, 12, ha="center")
        for place, (item, is_relevant) in enumerate(zip(ranking.items, ranking.relevant, strict=True)):
            sheet.picture(x, TOP + place * STEP, example.images[item], colour if is_relevant else None)
    for (here, x), (there, next_x) in pairwise(zip(of, COLUMNS_X, strict=True)):
        for item, is_relevant in zip(here.items, here.relevant, strict=True):
            heights = [TOP + ranking.items.index(item) * STEP + SIDE / 2 for ranking in (here, there)]
            colour_of_line, wide, order = (colour, 1.8, 3) if is_relevant else (LINE, 0.9, 2)
            sheet.line([x + SIDE + 3, next_x - 3], heights, colour_of_line, wide, order)
    y = TOP + len(of[0].items) * STEP + 14
    for name, values in _measures(of).items():
        sheet.words(PANEL_X + 8, y, name, 12.5, PALE)
        for x, value in zip(COLUMNS_X, values, strict=True):
            is_best = value == max(values)
            sheet.words(x + SIDE / 2, y, f"{value:.2f}", 13, ha="center", weight="bold" if is_best else "normal")
        y += 22
    sheet.words(PANEL_X + 12, y + 43, LESSON, 12, PALE, va="center", linespacing=1.35)


def _measures(rankings: tuple[Ranking, ...]) -> dict[str, list[float]]:
    """Of F the predicted one has most, of F + L (epsilon is 1) the loss-augmented one, of AP the ground truth."""
    return {
        "F": [ranking.score for ranking in rankings],
        "F + L": [ranking.score + EPSILON * ranking.loss for ranking in rankings],
        "AP": [ranking.precision for ranking in rankings],
    }
