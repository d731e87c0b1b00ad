"""Tables of what was tried on photographs: deep networks and heads for them, and networks fine-tuned by every loss."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rankshot.schema import read_json

from ..tables import counted, either, in_percent
from ..tables import markdown as table
from .contenders import METHODS
from .fine_tuning import FOLDER as FINE_TUNED
from .fine_tuning import TASKS, records
from .resnet12 import FOLDER as TRIALS
from .resnet12_heads import FOLDER as HEADS
from .resnet12_heads import RULES, retrieved
from .resnet12_model import NAME as MODEL
from .resnet12_model import record_of as model_record

BIRDS = Path("trials/birds-51-100")
LOSSES = {"MultiSimilarityLoss": "multi-similarity"}
SHOWN = {
    "smooth-ap": "Smooth-AP",
    "proxy-anchor": "ProxyAnchor",
    "multi-similarity": "MultiSimilarity",
    "map-ssvm": "mAP-SSVM",
    "map-dlm": "mAP-DLM",
    "map-dlm-coarse": "mAP-DLM, heavier coarse objective",
}
PUBLISHED = {"RFS, distilled": ("64.8", "82.1"), "FEAT": ("66.8", "82.1"), "DeepEMD": ("68.8", "84.1")}
RANKED = {"": "", "nothing": "", "upright": "classes", "classes": "classes", "turned": "turned classes", "images": "images"}
RULE_NAMES = {"prototype": "class mean", "logistic": "logistic"}
PARTS = {
    "network": "the whole network",
    "batch-statistics": "the whole network, batch statistics",
    "head": "a linear head alone",
    "whitened": "a whitened head alone",
}


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


def deep_in_short(results: Path) -> str:
    """What ranking adds to ResNet-12 on the test classes, beside what others have published."""
    folder, tasks = results / HEADS, ("1-shot 5-way", "5-shot 5-way", "retrieval 20-way")
    found = {
        "classes, rotations and self-distillation, no ranking": folder / "on-distil-0" / "test" / "none.json",
        "that network, mean of the embeddings subtracted": folder / "on-distil-0" / "test" / "centred.json",
        f"`{MODEL}`: that network, with a head trained by mAP-DLM": model_record(results),
    }
    (both,) = (folder / "on-distil-images-0" / "test").glob("scale-map-dlm-rate*.json")
    found["mAP-DLM twice: on views of an image, and for the head"] = both
    rows = []
    for name, path in found.items():
        figures = [read_json(path)["results"]["prototype"][task] for task in tasks]
        rows.append([name, *map(in_percent, figures)])
    rows += [[f"{name}, as published", *values, "–"] for name, values in PUBLISHED.items()]
    return table(["mini-ImageNet, ResNet-12", *tasks], rows)


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
            rows.append([f"`{network.name}`", trial["head"], how, *map(in_percent, shown)])
    tasks = [f"{shot}-shot, {rule}" for shot in (1, 5) for rule in ("class mean", "logistic")]
    return table(["", "head", "trained with", *tasks, "retrieval"], rows)


def page(results: Path) -> str:
    """All of them, as far as there are json files; above each, what its ± is, and how many seeds."""
    parts = []
    if list((results / TRIALS).glob("*.json")):
        parts += ["## ResNet-12 on mini-ImageNet", "In %, one seed each.", deep_trials(results)]
    if paths := list((results / HEADS).glob("*/test/*.json")):
        episodes = {read_json(path)["episodes"] for path in paths}
        told = f"In %, one seed each; ± is the 95 % interval over {either(episodes)} episodes."
        parts += ["## Heads for it", told, heads(results)]
    if seeds := {len(some) for some in trials_on_birds(results).values()}:
        told = f"In %, {counted(seeds)} per row; ± is the standard deviation over seeds, of rows with several."
        parts += ["## Settings tried on birds 51-100", told, birds(results)]
    for task in TASKS:
        if (results / FINE_TUNED / task / "untaught.json").is_file():
            seeds = {len(some) for some in tested(results, task).values()}
            told = f"In %, {counted(seeds)} per row; ± is the standard deviation over them." if seeds else "In %."
            parts += [f"## EfficientNet-Lite0 taught {task}", told, of_fine_tuning(results, task)]
    return "\n\n".join(parts) + "\n" if parts else ""


def birds(results: Path) -> str:
    """What was tried on birds 51-100 by networks that were taught birds 1-50, the best last; a trial's seeds together."""
    rows = []
    trials = trials_on_birds(results).values()
    for records_of_it in sorted(trials, key=lambda some: mean(each["results"]["map_at_r"] for each in some)):
        trial = records_of_it[0]["trial"]
        settings = trial["settings"] | ({"miner": trial["miner"]} if "miner" in trial else {})
        how = ", ".join(f"{name} {_plain(value)}" for name, value in settings.items())
        figures = [_spread([each["results"][name] for each in records_of_it]) for name in ("recall_at_1", "map_at_r")]
        of_norm = {"batch": "of each batch", "frozen": "frozen"}[trial["statistics"]]
        rows.append(
            [LOSSES.get(trial["loss"], trial["loss"]), how, of_norm, f"{trial['rate']:g}", str(trial["updates"]), *figures]
        )
    return table(["", "settings", "statistics of batch norm", "rate", "updates", "Recall@1", "MAP@R"], rows)


def trials_on_birds(results: Path) -> dict[str, list[dict[str, Any]]]:
    """Name of a trial -> the records of its seeds."""
    trials: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((results / BIRDS).glob("*.json")):
        record = read_json(path)
        trials.setdefault(record["trial"]["name"], []).append(record)
    return trials


def _plain(value: Any) -> str:
    """A setting in a cell: numbers short, lists by their ends."""
    if isinstance(value, list):
        return f"{_plain(value[0])} … {_plain(value[-1])}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def of_fine_tuning(results: Path, task: str) -> str:
    """Every method that has been measured on the classes of test, the best last; few-shot figures by the class mean."""
    untaught = read_json(results / FINE_TUNED / task / "untaught.json")["results"]
    metrics = {"recall_at_1": "Recall@1", "map_at_r": "MAP@R", "map": "mAP"}
    columns = [*metrics.values(), *(f"{few}, {RULE_NAMES[rule]}" for rule, few in _few_shot(untaught))]
    rows = [["not fine-tuned", "–", *(f"{value:.1f}" for value in _figures(untaught, metrics))]]
    measured = tested(results, task)
    for part, learned in PARTS.items():
        of_part = {method: some for (what, method), some in measured.items() if what == part}
        for method, some in sorted(of_part.items(), key=lambda item: mean(each["map_at_r"] for each in item[1])):
            by_metric = zip(*(_figures(each, metrics) for each in some), strict=True)
            rows.append([f"`{method}`", learned, *(_spread(list(values)) for values in by_metric)])
    return table(["", "what is trained", *columns], rows)


def tested(results: Path, task: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """(what is trained, method) -> the figures of its seeds on the classes of test."""
    found = {(part, method): records(results, task, part, "test", method) for part in PARTS for method in METHODS}
    return {which: [record["results"] for record in some] for which, some in found.items() if some}


def fine_tuning_in_short(results: Path) -> str:
    """The whole network by a few losses, on products and on birds that it has not been taught."""
    few = "5-shot 20-way"

    def figures(found: list[dict[str, Any]], task: str) -> list[str]:
        if task == "grocery":
            return [_spread([100 * each["prototype"][few]["mean"] for each in found])]
        return [_spread([each[name] for each in found]) for name in ("recall_at_1", "map_at_r")]

    untaught = {task: read_json(results / FINE_TUNED / task / "untaught.json")["results"] for task in TASKS}
    rows = [["not fine-tuned", *figures([untaught["grocery"]], "grocery"), *figures([untaught["cub"]], "cub")]]
    for method, name in SHOWN.items():
        cells = []
        for task in ("grocery", "cub"):
            found = [record["results"] for record in records(results, task, "network", "test", method)]
            cells += figures(found, task)
        rows.append([f"fine-tuned with {name}", *cells])
    return table(["EfficientNet-Lite0", "products: 20-way 5-shot", "birds: Recall@1", "MAP@R"], rows)


def _few_shot(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """(rule, task) of few-shot classification, where a task has it."""
    return [(rule, few) for rule in RULES if rule in figures for few in figures[rule]]


def _figures(figures: dict[str, Any], metrics: Iterable[str]) -> list[float]:
    return [*(figures[name] for name in metrics), *(100 * figures[rule][few]["mean"] for rule, few in _few_shot(figures))]


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{mean(values):.2f}"
