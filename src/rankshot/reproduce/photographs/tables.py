"""Tables of what was tried on photographs: deep networks and heads for them, and networks fine-tuned by every loss."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rankshot.schema import read_json

from ..tables import markdown as table
from .contenders import METHODS
from .fine_tuning import FOLDER as FINE_TUNED
from .fine_tuning import TASKS, records
from .resnet12 import FOLDER as TRIALS
from .resnet12_heads import FOLDER as HEADS
from .resnet12_heads import RULES, retrieved

RANKED = {"": "", "nothing": "", "upright": "classes", "classes": "classes", "turned": "turned classes", "images": "images"}
PARTS = {"network": "the whole network", "head": "a linear head, the network frozen"}


def deep_trials(results: Path) -> str:
    """One line a trial, as its json has it, the best on validation classes last."""
    found = {path.stem: read_json(path) for path in (results / TRIALS).glob("*.json")}
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


def heads(results: Path) -> str:
    """Of every network, kind of head and loss: what was chosen on validation classes, as it does on test classes."""
    rows = []
    for network in sorted({path.parent.parent for path in (results / HEADS).glob("*/test/*.json")}):
        tested = [read_json(path) for path in (network / "test").glob("*.json")]
        for record in sorted(tested, key=retrieved):
            trial, found = record["trial"], record["results"]
            how = f"{trial['loss']}, rate {trial['rate']:g}, {trial['updates']} updates" if trial["loss"] else "–"
            shown = [found[rule][task] for task in ("1-shot 5-way", "5-shot 5-way") for rule in RULES]
            shown.append(found[RULES[0]]["retrieval 20-way"])
            cells = [f"{100 * value['mean']:.2f} ± {100 * value['interval']:.2f}" for value in shown]
            rows.append([f"`{network.name}`", trial["head"], how, *cells])
    tasks = [f"{shot}-shot, {rule}" for shot in (1, 5) for rule in ("class mean", "logistic")]
    return table(["", "head", "learned by", *tasks, "retrieval"], rows)


def page(results: Path) -> str:
    """All of them, as far as there are json files."""
    parts = []
    if list((results / TRIALS).glob("*.json")):
        parts += ["## ResNet-12 on mini-ImageNet", deep_trials(results)]
    if list((results / HEADS).glob("*/test/*.json")):
        parts += ["## Heads for it", heads(results)]
    for task in TASKS:
        if (results / FINE_TUNED / task / "untaught.json").is_file():
            parts += [f"## EfficientNet-Lite0 taught {task}", of_fine_tuning(results, task)]
    return "\n\n".join(parts) + "\n" if parts else ""


def of_fine_tuning(results: Path, task: str) -> str:
    """Every method that has been measured on the classes of test, the best last."""
    metrics = {"recall_at_1": "Recall@1", "map_at_r": "MAP@R", "map": "mAP"}
    untaught = read_json(results / FINE_TUNED / task / "untaught.json")["results"]
    rows = [["as it comes", "", *(f"{untaught[metric]:.1f}" for metric in metrics)]]
    for part, learned in PARTS.items():
        found = {method: records(results, task, part, "test", method) for method in METHODS}
        measured = {method: some for method, some in found.items() if some}
        for method, some in sorted(measured.items(), key=lambda item: mean(_values(item[1], "map_at_r"))):
            rows.append([f"`{method}`", learned, *(_spread(_values(some, metric)) for metric in metrics)])
    return table(["", "what learned", *metrics.values()], rows)


def _values(some: Iterable[dict[str, Any]], metric: str) -> list[float]:
    return [record["results"][metric] for record in some]


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{mean(values):.2f}"
