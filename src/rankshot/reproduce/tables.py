"""Tables in Markdown, from the json files of runs and from nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rankshot.losses.ranking_loss import PAPER
from rankshot.schema import read_json
from rankshot.training import TrainConfig

from .job import NORMS, Questions, settings_in, settings_of
from .plan import BATCH_SIZES, BENCHMARKS, METHODS, RECIPES, SEEDS, batch_run
from .published import ALPHA_ONE, COLUMNS, DATA_NAMES, DIGITS, PUBLISHED, TITLES

Record = dict[str, Any]
NORM = "running"  # by which the tables of the documentation are made: an answer depends on no other query
WHOSE = {"paper": "the paper's recipe", "best": "our recipe"}
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31}  # degrees of freedom -> see `student`
ADVANTAGES = ("1-shot 5-way", "retrieval 16-way")  # validation tasks
UNMIRRORED = "unmirrored"  # what a network of mirror images gives without them


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def in_percent(cell: Mapping[str, float], digits: int = 2) -> str:
    """The mean of a task and its interval, as `fewshot.summary` has them.

    >>> in_percent({"mean": 0.5, "interval": 0.0123})
    '50.00 ± 1.23'
    """
    return f"{100 * cell['mean']:.{digits}f} ± {100 * cell['interval']:.{digits}f}"


def records(results: Path, pattern: str) -> list[Record]:
    """In the order of their names."""
    by_path = {path: read_json(path) for path in sorted(results.glob(f"{pattern}.json"))}
    for path, record in by_path.items():
        if not {"config", "test", "curve"} <= record.keys():
            raise ValueError(f"{path} is no record of a run: it should hold 'config', 'test' and 'curve'")
        check_figures(path, record, "test")
        if UNMIRRORED in record:
            check_figures(path, record, UNMIRRORED)
        record["config"] = settings_in(record, path)
    return list(by_path.values())


def seeds_in(results: Path, folder: str, norm: str) -> list[Record]:
    """The seeds of a row that were asked by this norm, and asked the same; see `asked_alike`."""
    return asked_alike([record for record in records(results, f"{folder}/*") if has_norm(record, norm)], norm)


def asked_alike(runs: Iterable[Record], norm: str) -> list[Record]:
    """Of seeds that were asked different episodes by this norm: those that were asked most, and of these the most seeds."""
    alike: dict[tuple[int, int], list[Record]] = {}
    for record in runs:
        asked = record["questions"]
        alike.setdefault((asked_by(norm, asked), asked.get("seed", Questions.seed)), []).append(record)
    _, most = max(alike.items(), key=lambda group: (group[0][0], len(group[1])), default=((0, 0), []))
    return most


def seeds_told(runs: Sequence[Record]) -> str:
    return f"{len(runs)} seed{'s' * (len(runs) > 1)}"


def has_norm(record: Record, norm: str) -> bool:
    return bool((record["test"] or {}).get(norm))


def seeds_of(results: Path, name: str, recipe: str, method: str, norm: str) -> list[tuple[str, list[Record]]]:
    """What a row is called, and the records of its seeds; a second one without mirror images, where ours has some."""
    runs = seeds_in(results, f"{name}/{recipe}/{method}", norm)
    few = f" ({seeds_told(runs)})" if len(runs) < len(SEEDS) else ""
    mirrored = " with mirror images" if runs and runs[0]["config"].get("mirror") else ""
    rows = [(f"{WHOSE[recipe]}{mirrored}{few}", runs)]
    if all(UNMIRRORED in record for record in runs):
        rows.append(
            (f"{WHOSE[recipe]} without mirror images{few}", [{**record, "test": record[UNMIRRORED]} for record in runs])
        )
    return rows if runs else []


def check_figures(path: Path, record: Record, kind: str) -> None:
    """By every norm that it was asked by; a run that was asked nothing has none."""
    test = record[kind]
    if test is None and not record.get("questions"):
        return
    norms = NORMS if (record.get("questions") or {}).get("batch_episodes") != 0 and kind != "validation" else (NORM,)
    by_norm = [test.get(norm) for norm in norms] if isinstance(test, dict) else [None]
    for tasks in by_norm:
        cells = list(tasks.values()) if isinstance(tasks, dict) else [None]
        figures = [cell.get(part) if isinstance(cell, dict) else None for cell in cells for part in ("mean", "interval")]
        if not all(type(figure) is float and math.isfinite(figure) for figure in figures):
            raise ValueError(f"{path} is damaged: {kind!r} should hold a mean and an interval of every task, by every norm")


def means(runs: Sequence[Record], norm: str, tasks: Sequence[str]) -> list[float]:
    """Over the seeds, in percent."""
    for record in runs:
        if missing := [task for task in tasks if task not in record["test"][norm]]:
            raise ValueError(
                f"the record of {record.get('name', 'a run')} has no figure of {missing[0]!r} by {norm} statistics"
            )
    return [100 * mean(record["test"][norm][task]["mean"] for record in runs) for task in tasks]


def main_table(results: Path, name: str, norm: str) -> str | None:
    """The paper's figure and ours of every method, recipe by recipe; the best of a column is bold. None: nothing yet."""
    tasks, digits = COLUMNS[name], DIGITS[name]
    rows: list[tuple[str, Sequence[float | None]]] = []
    seeds: set[int] = set()
    episodes: set[int] = set()
    for method in METHODS:
        if method in PUBLISHED[name]:
            rows.append((f"{TITLES[method]}, as published", PUBLISHED[name][method]))
        for recipe in RECIPES:
            for whose, runs in seeds_of(results, name, recipe, method, norm):
                rows.append((f"{TITLES[method]}, here, {whose}", means(runs, norm, tasks)))
                seeds.add(len(runs))
                episodes.update(asked_by(norm, record["questions"]) for record in runs)
    if not seeds:
        return None
    best = [
        max(round(figure, digits) for figure in column if figure is not None)
        for column in zip(*(row for _, row in rows), strict=True)
    ]
    body = [
        [label, *(_cell(figure, digits, top) for figure, top in zip(cells, best, strict=True))] for label, cells in rows
    ]
    protocol = f"{counted(seeds)} per row, {either(episodes)} episodes per task, "
    return f"{markdown([DATA_NAMES[name], *tasks], body)}\n\nMeans in %: {protocol}batch norm with {norm} statistics."


def asked_by(norm: str, questions: dict[str, Any]) -> int:
    """Episodes of a task, of a record that has this norm; as `Questions.by`."""
    return Questions(episodes=questions["episodes"], batch_episodes=questions.get("batch_episodes")).by(norm)


def _cell(value: float | None, digits: int, best: float) -> str:
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return f"**{text}**" if float(text) == best else text


def counted(seeds: set[int]) -> str:
    """How many seeds rows have.

    >>> counted({1}), counted({3, 2})
    ('1 seed', '2 or 3 seeds')
    """
    return f"{either(seeds)} seed{'s' * (seeds != {1})}"


def either(numbers: Iterable[int]) -> str:
    return " or ".join(f"{number:,}" for number in sorted(numbers))


def spread_table(results: Path, name: str, norm: str) -> str | None:
    """Every row to two digits, with its 95 % interval, and the deviation over its seeds."""
    tasks, body = COLUMNS[name], []
    for recipe in RECIPES:
        for method in METHODS:
            for whose, runs in seeds_of(results, name, recipe, method, norm):
                body.append([f"{TITLES[method]}, {whose}", *(with_interval(runs, norm, task) for task in tasks)])
    return markdown([DATA_NAMES[name], *tasks], body) if body else None


def with_interval(runs: Sequence[Record], norm: str, task: str) -> str:
    """Mean ± interval (deviation over seeds), in percent.

    All seeds are asked the same episodes, so that the interval of these does not shrink with the number of seeds. That of
    the seeds is Student's.
    """
    seed_means = [100 * record["test"][norm][task]["mean"] for record in runs]
    of_episodes = 100 * mean(record["test"][norm][task]["interval"] for record in runs)
    if len(runs) == 1:
        return f"{seed_means[0]:.2f} ± {of_episodes:.2f} (–)"
    deviation = stdev(seed_means)
    of_seeds = student(len(runs) - 1) * deviation / len(runs) ** 0.5
    return f"{mean(seed_means):.2f} ± {math.hypot(of_episodes, of_seeds):.2f} ({deviation:.2f})"


def student(degrees: int) -> float:
    """Standard errors of a 95 % interval whose standard error has so many degrees of freedom.

    >>> student(2), student(4), student(1000)  # too wide rather than too narrow
    (4.3, 2.78, 2.31)
    """
    return STUDENT[min(degrees, max(STUDENT))]


def alpha_table(results: Path, norm: str) -> str | None:
    """Alpha 1 against alpha 10 on mini-ImageNet, as in the supplementary."""
    name = "mini-imagenet"
    tasks, body = COLUMNS[name], []
    for method, published in ALPHA_ONE.items():
        for alpha, folder, figures in (
            (1, f"{name}/alpha/{method}-1", published),
            (10, f"{name}/paper/{method}", PUBLISHED[name][method]),
        ):
            if runs := seeds_in(results, folder, norm):
                body.append([f"{TITLES[method]}, alpha {alpha}, as published", *(f"{figure:.2f}" for figure in figures)])
                here = (f"{figure:.2f}" for figure in means(runs, norm, tasks))
                body.append([f"{TITLES[method]}, alpha {alpha}, here ({seeds_told(runs)})", *here])
    return markdown([DATA_NAMES[name], *tasks], body) if body else None


def advantage_table(results: Path) -> str | None:
    """What ranking gives over pairs by the size of the batch, on mini-ImageNet's validation classes.

    Of the networks that were kept, on other episodes than chose them. A size has one run a method: the intervals are over
    episodes, not seeds. It has a row as soon as it has both runs.
    """
    methods = ("map-dlm", "siamese")
    body = []
    for size in BATCH_SIZES:
        kept = [(run["validation"] or {}).get(NORM) for name in methods for run in records(results, batch_run(name, size))]
        if len(kept) == len(methods) and all(found and set(ADVANTAGES) <= found.keys() for found in kept):
            cells = [cell for task in ADVANTAGES for cell in _advantage(*(found[task] for found in kept if found))]
            body.append([f"{size}", *cells])
    head = [f"{task}: {column}" for task in ADVANTAGES for column in (*(TITLES[name] for name in methods), "advantage")]
    return markdown(["batch size", *head], body) if body else None


def _advantage(ours: dict[str, float], pairs: dict[str, float]) -> list[str]:
    return [in_percent(ours), in_percent(pairs), f"{100 * (ours['mean'] - pairs['mean']):+.2f}"]


def again_table(results: Path, name: str) -> str | None:
    """Rows that were made once more from their json, of all seeds: what they gave then, and now."""
    body = []
    for method in METHODS:
        then, now = (records(results, f"{name}/{folder}/{method}/*") for folder in ("earlier", "paper"))
        for norm in NORMS if then and now else ():
            first, second = (means(runs, norm, COLUMNS[name]) for runs in (then, now))
            for task, one, other in zip(COLUMNS[name], first, second, strict=True):
                figures = (f"{one:.2f}", f"{other:.2f}", f"{other - one:+.2f}", _by_chance(then, now, norm, task))
                body.append([f"{TITLES[method]}, {norm} statistics, {task}", *figures])
    head = [DATA_NAMES[name], "then", "now", "difference", "two deviations over seeds and both intervals over episodes"]
    return markdown(head, body) if body else None


def _by_chance(then: Sequence[Record], now: Sequence[Record], norm: str, task: str) -> str:
    """How far two rows of one recipe may be apart, in points: by their seeds, and since their episodes differ."""
    if len(then) == 1:
        return "–"
    spread = stdev(record["test"][norm][task]["mean"] for record in then)
    of_episodes = (mean(record["test"][norm][task]["interval"] for record in runs) for runs in (then, now))
    return f"{100 * math.hypot(2 * spread, *of_episodes):.2f}"


def trials_table(results: Path, name: str) -> str:
    """Every trial, the best first: what differs from the defaults, and what it gave on the validation classes."""
    runs = records(results, f"trials/{name}/*")
    if not runs:
        return "No trial yet."
    base = BENCHMARKS[name].base if name in BENCHMARKS else TrainConfig.of(data=name)
    usual = settings_of(base)
    hidden = {"updates", "log_every", "checkpoint_every", *(setting for setting in usual if setting.startswith("validat"))}
    lines = []
    for record in runs:
        method = record["config"]["method"]
        former = base.changed(method=method, **(PAPER if method.startswith("map-") else {}))  # defaults of that time
        usual = {**settings_of(former), "method": base.method.name}
        last = max(record["curve"], key=lambda point: list(point.values())[-1]["mean"])
        tasks = [task for task in last if task != "update"]
        changes = [
            f"{setting} {_shown(value)}"
            for setting, value in record["config"].items()
            if setting not in hidden and value != usual.get(setting)
        ]
        sizes = f"{record['config']['updates']:,}", f"{record['config']['validation_episodes']}"
        lines.append((-last[tasks[-1]]["mean"], ", ".join(changes), tasks, last, sizes))
    tasks = lines[0][2]
    rows = [
        [changes or "–", *sizes, *(f"{100 * last[task]['mean']:.2f}" for task in tasks)]
        for _, changes, _, last, sizes in sorted(lines, key=lambda line: line[:2])
    ]
    interval = 100 * mean(last[tasks[-1]]["interval"] for *_, last, _ in lines)
    table = markdown(["settings", "updates", "episodes", *tasks], rows)
    return f"{table}\n\nThe 95 % interval of the last column is about ± {interval:.2f}."


def _shown(value: object) -> str:
    return value if isinstance(value, str) else " + ".join(value) if isinstance(value, list) else json.dumps(value)


def all_tables(results: Path) -> str:
    """Everything that there is, data set by data set."""
    parts = ["# What was measured", "Made by `rankshot reproduce --tables` from the json files beside this page."]
    for name in BENCHMARKS:
        if main_table(results, name, "running") is None:
            continue
        parts.append(f"## {DATA_NAMES[name]}")
        for norm in NORMS:
            if (table := main_table(results, name, norm)) is None:
                continue
            parts += [f"### Batch norm with {norm} statistics", table]
            parts += ["With 95 % intervals over seeds and episodes; in brackets, the standard deviation over seeds:"]
            parts += [str(spread_table(results, name, norm))]
        if name == "mini-imagenet" and (table := advantage_table(results)):
            parts += [
                "### Batch sizes",
                "The paper's recipe with fewer images in a batch, always of 8 classes: accuracy and mAP in %, of the kept "
                "network of each run, on 3,000 other episodes of the validation classes, or on 300 where the run is an "
                "earlier one: those have intervals three times as wide. One seed each; 95 % intervals over episodes.",
                table,
            ]
    if table := alpha_table(results, NORM):
        parts += ["## Alpha", table]
    for name in BENCHMARKS:
        if table := again_table(results, name):
            parts += [
                f"## A row run again: {DATA_NAMES[name]}",
                "The paper's recipe with the same settings and seeds, run with later code and measured on other episodes. "
                "The last column is the root of the sum of the squares of these three, in points.",
                table,
            ]
    return "\n\n".join(parts) + "\n"
