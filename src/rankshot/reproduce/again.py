"""A run once more from its json, beside what it gave the first time."""

from __future__ import annotations

from pathlib import Path
from statistics import stdev
from typing import Any

from rankshot.models.pretrained import read_json

from .job import Run, perform


def compared(path: Path, run: Run, folder: Path) -> str:
    """Perform `run`, which `path` records, in a folder of its own; a line for every task: before, now, and the seeds."""
    before = read_json(path)
    kind = "test" if before.get("test") else "validation"
    if not before.get(kind):
        raise ValueError(f"{path} holds no result to compare with, but for a curve perhaps")
    seeds = [before, *other_seeds(path, before, kind)]
    now = perform(run, folder / "run", folder / "results")
    lines = [f"{'':8} {'':18} {'then':>7} {'now':>7} {'apart':>7}   deviation over {len(seeds)} seeds"]
    for norm, tasks in before[kind].items():
        for task, then in tasks.items():
            one, other = 100 * then["mean"], 100 * now[kind][norm][task]["mean"]
            spread = f"{stdev(100 * each[kind][norm][task]['mean'] for each in seeds):.2f}" if len(seeds) > 1 else "–"
            lines.append(f"{norm:8} {task:18} {one:7.2f} {other:7.2f} {other - one:+7.2f}   {spread}")
    return "\n".join(lines)


def other_seeds(path: Path, record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The records beside it that differ in nothing but their seed."""

    def but_for_the_seed(each: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in each["config"].items() if name != "seed"}

    beside = (read_json(each) for each in sorted(path.parent.glob("*.json")) if each.resolve() != path.resolve())
    comparable = (each for each in beside if isinstance(each.get("config"), dict) and each.get(kind))
    return [each for each in comparable if but_for_the_seed(each) == but_for_the_seed(record)]
