"""Trials of deep networks, and networks that were fine-tuned by every loss."""

from __future__ import annotations

import json
from collections.abc import Iterable
from statistics import mean, stdev
from typing import Any

from rankshot.reproduce.tables import markdown as table

from ..deep import FOLDER as TRIALS
from ..fine_tuning import FOLDER as FINE_TUNED
from ..fine_tuning import METHODS, records

RANKED = {"": "", "nothing": "", "upright": "classes", "classes": "classes", "turned": "turned classes", "images": "images"}
PARTS = {"network": "the whole network", "head": "a linear head, the network frozen"}


def deep_trials() -> str:
    """One line a trial, as its json has it, the best on validation classes last."""
    found = {path.stem: json.loads(path.read_text()) for path in TRIALS.glob("*.json")}
    rows = []
    for name, record in sorted(found.items(), key=lambda item: item[1]["val"]["ap"]["retrieval 16-way"]["mean"]):
        trial = record["trial"]
        on = f"embedding, weight {trial['weight']:g}" if not trial["projection"] else "projection"
        ranked = RANKED[trial["rank"]]
        cells = [f"`{name}`", f"{ranked}, on the {on}" if ranked else "–", f"{record['updates']:,}"]
        for split, retrieval in (("val", "retrieval 16-way"), ("test", "retrieval 20-way")):
            logistic, ap = record[split]["logistic"], record[split]["ap"]
            values = (logistic["1-shot 5-way"], logistic["5-shot 5-way"], ap[retrieval])
            cells += [f"{100 * value['mean']:.1f}" for value in values]
        rows.append(cells)
    columns = [f"{split} {task}" for split in ("val", "test") for task in ("1-shot", "5-shot", "retrieval")]
    return table(["", "ranked", "updates", *columns], rows)


def of_fine_tuning(task: str) -> str:
    """Every method that has been measured on the classes of test, the best last."""
    metrics = {"recall_at_1": "Recall@1", "map_at_r": "MAP@R", "map": "mAP"}
    untaught = json.loads((FINE_TUNED / task / "untaught.json").read_text())["results"]
    rows = [["as it comes", "", *(f"{untaught[metric]:.1f}" for metric in metrics)]]
    for part, learned in PARTS.items():
        found = {method: records(FINE_TUNED, task, part, "test", method) for method in METHODS}
        measured = {method: some for method, some in found.items() if some}
        for method, some in sorted(measured.items(), key=lambda item: mean(_values(item[1], "map_at_r"))):
            rows.append([f"`{method}`", learned, *(_spread(_values(some, metric)) for metric in metrics)])
    return table(["", "what learned", *metrics.values()], rows)


def _values(some: Iterable[dict[str, Any]], metric: str) -> list[float]:
    return [record["results"][metric] for record in some]


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{mean(values):.2f}"
