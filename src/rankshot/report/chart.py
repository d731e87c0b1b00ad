"""Line charts as SVG that takes its colours from the page, so that it can be read in light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 420, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 30
MOST_POINTS = 200
COLOURS = 8  # of the page: s0 to s7


def chart(title: str, lines: Mapping[str, Points]) -> str:
    """One line a name, coloured by its place in `lines` (classes s0, s1, … of the page), with ticks and a legend.

    A name without points has no line, and keeps its colour for itself.
    """
    colours = {name: number % COLOURS for number, name in enumerate(lines)}
    lines = {name: thinned(points) for name, points in lines.items() if points}
    if not lines:
        return ""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    x_ticks, y_ticks = ticks(min(0, *xs), max(xs)), ticks(min(ys), max(ys))
    x0, x1, y0, y1 = x_ticks[0], max(x_ticks[-1], *xs), y_ticks[0], y_ticks[-1]

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        across, up = (x - x0) / ((x1 - x0) or 1), (y - y0) / ((y1 - y0) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = []
    for y in y_ticks:
        _, at = to_pixels(x0, y)
        parts.append(f'<line class=grid x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in x_ticks:
        at, _ = to_pixels(x, y0)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    for name, points in lines.items():
        number = colours[name]
        coordinates = " ".join("{:.1f},{:.1f}".format(*to_pixels(*point)) for point in points)
        parts.append(f'<polyline class="line s{number}" points="{coordinates}"/>')
        if len(points) <= 30:
            dots = (to_pixels(*point) for point in points)
            parts += [f'<circle class="dot s{number}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in dots]
    legend = "".join(f'<span class="key s{colours[name]}">{escape(name)}</span>' for name in lines)
    label = escape(f"{title}: {', '.join(lines)}", quote=True)
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return f"<figure class=chart><figcaption>{escape(title)}</figcaption>{svg}<div class=legend>{legend}</div></figure>"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about five of them.

    >>> ticks(0.0, 83.0)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    size = max(abs(low), abs(high), 1e-9)
    span = high - low if high - low > 1e-6 * size else size  # what differs in rounding only is one value
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, max(last, first + 1) + 1)]


def thinned(points: Points) -> Points:
    """At most MOST_POINTS, each the mean of some neighbours."""
    size = math.ceil(len(points) / MOST_POINTS)
    groups = (points[start : start + size] for start in range(0, len(points), size)) if size else ()
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
