"""Tables in Markdown, from the json files of runs and from nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rankshot.schema import read_json
from rankshot.training import TrainConfig

from .job import NORMS, settings_in, settings_of
from .plan import BENCHMARKS, METHODS, RECIPES, SEEDS
from .published import ALPHA_ONE, COLUMNS, DIGITS, NAMES, PUBLISHED

Record = dict[str, Any]
WHOSE = {"paper": "the paper's recipe", "best": "our recipe"}
UNMIRRORED = "unmirrored"  # what a network of mirror images gives without them


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def records(results: Path, pattern: str) -> list[Record]:
    """In the order of their names."""
    found = {path: read_json(path) for path in sorted(results.glob(f"{pattern}.json"))}
    for path, each in found.items():
        if not {"config", "test", "curve"} <= each.keys():
            raise ValueError(f"{path} is no record of a run: it should hold 'config', 'test' and 'curve'")
        check_figures(path, each, "test")
        if UNMIRRORED in each:
            check_figures(path, each, UNMIRRORED)
        each["config"] = settings_in(each, path)
    return list(found.values())


def seeds_of(results: Path, name: str, recipe: str, method: str) -> list[tuple[str, list[Record]]]:
    """What a row is called, and the records of its seeds; a second one without mirror images, where ours has some."""
    found = records(results, f"{name}/{recipe}/{method}/*")
    few = f" ({len(found)} seed{'s' * (len(found) > 1)})" if len(found) < len(SEEDS) else ""
    mirrored = " with mirror images" if found and found[0]["config"].get("mirror") else ""
    rows = [(f"{WHOSE[recipe]}{mirrored}{few}", found)]
    if all(UNMIRRORED in each for each in found):
        rows.append((f"{WHOSE[recipe]} without mirror images{few}", [{**each, "test": each[UNMIRRORED]} for each in found]))
    return rows if found else []


def check_figures(path: Path, record: Record, kind: str) -> None:
    """By both norms; a run that was asked nothing has none."""
    test = record[kind]
    if test is None and not record.get("questions"):
        return
    found = [test.get(norm) for norm in NORMS] if isinstance(test, dict) else [None]
    for tasks in found:
        cells = list(tasks.values()) if isinstance(tasks, dict) else [None]
        figures = [each.get(part) if isinstance(each, dict) else None for each in cells for part in ("mean", "interval")]
        if not all(type(figure) is float and math.isfinite(figure) for figure in figures):
            raise ValueError(f"{path} is damaged: {kind!r} should hold a mean and an interval of every task, by both norms")


def norm_of(results: Path, name: str) -> str | None:
    """The norm under which rows and curves do better on the validation classes; None where none of them has any."""
    places = [f"{name}/{recipe}/*/*" for recipe in RECIPES] + [f"{name}/curves/*"]
    kept = (each.get("validation") for place in places for each in records(results, place))
    found = [each for each in kept if each and all(each.get(norm) for norm in NORMS)]
    if not found:
        return None
    return max(NORMS, key=lambda norm: mean(list(each[norm].values())[-1]["mean"] for each in found))


def means(found: Sequence[Record], norm: str, tasks: Sequence[str]) -> list[float]:
    """Over the seeds, in percent."""
    for each in found:
        if missing := [task for task in tasks if task not in each["test"][norm]]:
            raise ValueError(
                f"the record of {each.get('name', 'a run')} has no figure of {missing[0]!r} by {norm} statistics"
            )
    return [100 * mean(each["test"][norm][task]["mean"] for each in found) for task in tasks]


def main_table(results: Path, name: str, norm: str) -> str | None:
    """The paper's figure and ours of every method, recipe by recipe; the best of a column is bold. None: nothing yet."""
    tasks, digits = COLUMNS[name], DIGITS[name]
    rows: list[tuple[str, Sequence[float | None]]] = []
    seeds: set[int] = set()
    episodes: set[int] = set()
    for method in METHODS:
        if method in PUBLISHED[name]:
            rows.append((f"{NAMES[method]}, as published", PUBLISHED[name][method]))
        for recipe in RECIPES:
            for whose, found in seeds_of(results, name, recipe, method):
                rows.append((f"{NAMES[method]}, here, {whose}", means(found, norm, tasks)))
                seeds.add(len(found))
                episodes.update(each["questions"]["episodes"] for each in found)
    if not seeds:
        return None
    best = [
        max(round(each, digits) for each in column if each is not None)
        for column in zip(*(row for _, row in rows), strict=True)
    ]
    body = [[label, *(_cell(each, digits, top) for each, top in zip(cells, best, strict=True))] for label, cells in rows]
    told = f"{_numbers(seeds)} seed{'s' * (seeds != {1})} a row, {_numbers(episodes)} episodes a task, "
    return f"{markdown([NAMES[name], *tasks], body)}\n\nMeans in %: {told}batch norm by {norm} statistics."


def _cell(value: float | None, digits: int, best: float) -> str:
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return f"**{text}**" if float(text) == best else text


def _numbers(found: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(found)))


def spread_table(results: Path, name: str, norm: str) -> str | None:
    """Every row to two digits, with the deviation over its seeds, and the 95 % interval of a seed's episodes."""
    tasks, body = COLUMNS[name], []
    for recipe in RECIPES:
        for method in METHODS:
            for whose, found in seeds_of(results, name, recipe, method):
                cells = []
                for task in tasks:
                    each = [100 * record["test"][norm][task]["mean"] for record in found]
                    interval = 100 * mean(record["test"][norm][task]["interval"] for record in found)
                    spread = f"{stdev(each):.2f}" if len(each) > 1 else "–"
                    cells.append(f"{mean(each):.2f} ({spread}; ± {interval:.2f})")
                body.append([f"{NAMES[method]}, {whose}", *cells])
    return markdown([NAMES[name], *tasks], body) if body else None


def alpha_table(results: Path, norm: str) -> str | None:
    """Alpha 1 against alpha 10 on mini-ImageNet, as in the supplementary."""
    name = "mini-imagenet"
    tasks, body = COLUMNS[name], []
    for method, published in ALPHA_ONE.items():
        for alpha, pattern, figures in (
            (1, f"{name}/alpha/{method}-1/*", published),
            (10, f"{name}/paper/{method}/*", PUBLISHED[name][method]),
        ):
            if found := records(results, pattern):
                body.append([f"{NAMES[method]}, alpha {alpha}, as published", *(f"{each:.2f}" for each in figures)])
                here = means(found, norm, tasks)
                body.append([f"{NAMES[method]}, alpha {alpha}, here", *(f"{each:.2f}" for each in here)])
    return markdown([NAMES[name], *tasks], body) if body else None


def again_table(results: Path, name: str) -> str | None:
    """Rows that were made once more from their json, of all seeds: what they gave then, and now."""
    body = []
    for method in METHODS:
        then, now = (records(results, f"{name}/{place}/{method}/*") for place in ("earlier", "paper"))
        for norm in NORMS if then and now else ():
            first, second = (means(found, norm, COLUMNS[name]) for found in (then, now))
            for task, one, other in zip(COLUMNS[name], first, second, strict=True):
                spread = stdev(100 * each["test"][norm][task]["mean"] for each in then) if len(then) > 1 else math.nan
                figures = (f"{one:.2f}", f"{other:.2f}", f"{other - one:+.2f}", f"{2 * spread:.2f}")
                body.append([f"{NAMES[method]}, {norm} statistics, {task}", *figures])
    return markdown([NAMES[name], "then", "now", "apart", "two seed deviations"], body) if body else None


def trials_table(results: Path, name: str) -> str:
    """Every trial, the best first: what differs from the defaults, and what it gave on the validation classes."""
    found = records(results, f"trials/{name}/*")
    if not found:
        return "No trial yet."
    base = BENCHMARKS[name].base if name in BENCHMARKS else TrainConfig.of(data=name)
    usual = settings_of(base)
    hidden = {"updates", "log_every", "checkpoint_every", *(each for each in usual if each.startswith("validat"))}
    lines = []
    for record in found:
        usual = {**settings_of(base.changed(method=record["config"]["method"])), "method": base.method.name}
        last = max(record["curve"], key=lambda point: list(point.values())[-1]["mean"])
        tasks = [task for task in last if task != "update"]
        told = [
            f"{setting} {_told(value)}"
            for setting, value in record["config"].items()
            if setting not in hidden and value != usual.get(setting)
        ]
        sizes = f"{record['config']['updates']:,}", f"{record['config']['validation_episodes']}"
        lines.append((-last[tasks[-1]]["mean"], ", ".join(told), tasks, last, sizes))
    tasks = lines[0][2]
    rows = [
        [told or "–", *sizes, *(f"{100 * last[task]['mean']:.2f}" for task in tasks)]
        for _, told, _, last, sizes in sorted(lines, key=lambda line: line[:2])
    ]
    interval = 100 * mean(last[tasks[-1]]["interval"] for *_, last, _ in lines)
    table = markdown(["settings", "updates", "episodes", *tasks], rows)
    return f"{table}\n\nThe interval of the last column is about ± {interval:.2f}."


def _told(value: object) -> str:
    return value if isinstance(value, str) else " + ".join(value) if isinstance(value, list) else json.dumps(value)


def all_tables(results: Path) -> str:
    """Everything that there is, data set by data set."""
    parts = ["# What was measured", "Made by `rankshot reproduce --tables` from the json files beside this page."]
    for name in BENCHMARKS:
        if main_table(results, name, "running") is None:
            continue
        parts.append(f"## {NAMES[name]}")
        if norm := norm_of(results, name):
            parts.append(f"On the validation classes batch norm by **{norm}** statistics does better.")
        for norm in NORMS:
            parts += [f"### Batch norm by {norm} statistics", str(main_table(results, name, norm))]
            parts += ["With the deviation over seeds, and the 95 % interval over one seed's episodes:"]
            parts += [str(spread_table(results, name, norm))]
    if table := alpha_table(results, norm_of(results, "mini-imagenet") or "batch"):
        parts += ["## Alpha", table]
    for name in BENCHMARKS:
        if table := again_table(results, name):
            parts += [
                "## A row run once more",
                "The paper's recipe from the same settings and seeds, by later code.",
                table,
            ]
    return "\n\n".join(parts) + "\n"
