"""A run once more from its json, beside what it gave the first time."""

from __future__ import annotations

from contextlib import suppress
from math import nan
from pathlib import Path
from statistics import stdev
from typing import Any

from rankshot.schema import read_json

from .job import Run, perform, settings_in
from .tables import check_figures

NOTHING = {"mean": nan}


def compared(path: Path, run: Run, folder: Path) -> str:
    """Perform `run`, which `path` records, in a folder of its own; a line for every task: before, now, and the seeds."""
    before = read_json(path)
    kind = "test" if before.get("test") else "validation"
    check_comparable(path)
    seeds = [before, *other_seeds(path, before, kind)]
    now = perform(run, folder / "run", folder / "results")
    lines = [f"{'':8} {'':18} {'then':>7} {'now':>7} {'apart':>7}   deviation over {len(seeds)} seeds"]
    for norm, tasks in before[kind].items():
        for task, then in tasks.items():
            one, other = 100 * then["mean"], 100 * now[kind][norm].get(task, NOTHING)["mean"]
            spread = f"{stdev(100 * seed[kind][norm][task]['mean'] for seed in seeds):.2f}" if len(seeds) > 1 else "–"
            lines.append(f"{norm:8} {task:18} {one:7.2f} {other:7.2f} {other - one:+7.2f}   {spread}")
    return "\n".join(lines)


def check_comparable(path: Path) -> None:
    """Before anything is trained: there is a result, and it is whole."""
    record = read_json(path)
    kind = "test" if record.get("test") else "validation"
    if not record.get(kind):
        raise ValueError(f"{path} holds no result to compare with, but for a curve perhaps")
    check_figures(path, record, kind)


def other_seeds(path: Path, record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The records beside it that differ in nothing but their seed."""

    def but_for_the_seed(candidate: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings_in(candidate, path).items() if name != "seed"}

    candidates = []
    for file in sorted(path.parent.glob("*.json")):
        with suppress(OSError, ValueError):  # what cannot be read is no seed
            beside = read_json(file)
            if file.resolve() != path.resolve() and isinstance(beside.get("config"), dict) and beside.get(kind):
                check_figures(file, beside, kind)
                candidates.append(beside)
    return [
        candidate
        for candidate in candidates
        if but_for_the_seed(candidate) == but_for_the_seed(record)
        and all(tasks.keys() <= candidate[kind].get(norm, {}).keys() for norm, tasks in record[kind].items())
    ]
