"""Settings of `RankingLoss` beside temperatures of Smooth-AP."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev

from rankshot.reproduce.tables import markdown as table

from ..places import ROOT

LABELS = {
    "coarse-0.03": "epsilon 0.001, smoothing 0.01, coarse weight 0.03",
    "coarse-0.1": "epsilon 0.001, smoothing 0.01, coarse weight 0.1",
    "coarse-0.3": "epsilon 0.001, smoothing 0.01, coarse weight 0.3",
    "wider-0.1": "epsilon 0.003, smoothing 0.02, coarse weight 0.1: `RankingLoss()`",
    "wider-0": "epsilon 0.003, smoothing 0.02, no coarse scale",
    "wider-0.03": "epsilon 0.003, smoothing 0.02, coarse weight 0.03",
    "wider-0.3-alpha-1": "epsilon 0.003, smoothing 0.02, coarse weight 0.3 with coarse alpha 1",
    "wider-1-alpha-1": "epsilon 0.003, smoothing 0.02, coarse weight 1 with coarse alpha 1",
    "both-0.1": "epsilon 0.003, smoothing 0.02, coarse weight 0.1, mean of both signs",
    "widest-0.1": "epsilon 0.005, smoothing 0.04, coarse weight 0.1",
    **{f"smooth-ap-{temperature}": f"Smooth-AP, temperature {temperature}" for temperature in (0.005, 0.01, 0.02, 0.05)},
}


def defaults() -> str:
    """Settings of `RankingLoss` beside temperatures of Smooth-AP, on validation classes."""
    parts = []
    for network, rate in (("conv4", 0.003), ("efficientnet-lite0", 0.0003)):
        found = of_network(network, rate)
        if not found:
            continue
        labels = dict.fromkeys(label for by_label in found.values() for label in by_label)
        best = {
            data: max(mean(x) for label, x in by_label.items() if label.startswith("smooth-ap"))
            for data, by_label in found.items()
        }
        rows = []
        for label in sorted(labels, key=lambda label: (label.startswith("smooth-ap"), label)):
            cells = []
            for data, by_label in found.items():
                values = by_label.get(label, [])
                deviation = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
                mark = "**" if values and mean(values) >= best[data] else ""
                cells.append(f"{mark}{mean(values):.2f}{mark}{deviation} ({len(values)})" if values else "–")
            rows.append([LABELS.get(label, f"`{label}`"), *cells])
        title = f"**{network}**, cosine schedule from a learning rate of {rate:g}:"
        parts += [title, table(["", *found], rows)]
    return "\n\n".join(parts)


def measured(results: Path) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Network and data set -> settings and learning rate -> retrieval among the most classes, in %, seed by seed."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for path in sorted((results / "defaults").glob("*/*/*/*.json")):
        *_, network, data, label, _ = path.parts
        by_task = json.loads(path.read_text())["validation"]["running"]
        found.setdefault((network, data), {}).setdefault(label, []).append(100 * list(by_task.values())[-1]["mean"])
    return found


def of_network(network: str, rate: float) -> dict[str, dict[str, list[float]]]:
    """Data set -> settings -> retrieval, with this learning rate."""
    end = f"-rate-{rate:g}"
    return {
        data: {label.removesuffix(end): values for label, values in by_label.items() if label.endswith(end)}
        for (name, data), by_label in measured(ROOT / "results").items()
        if name == network
    }
