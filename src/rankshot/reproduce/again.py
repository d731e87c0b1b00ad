"""A run once more from its json, beside what it gave the first time."""

from __future__ import annotations

from pathlib import Path
from statistics import stdev

from rankshot.models.pretrained import read_json

from .job import Run, perform, run_in

__all__ = ["compared", "run_in"]


def compared(path: Path, run: Run, folder: Path) -> str:
    """Perform `run`, which `path` records, in a folder of its own; a line for every task: before, now, and the seeds."""
    before = read_json(path)
    kind = "test" if before["test"] else "validation"
    if not before[kind]:
        raise ValueError(f"{path} is of a trial: it holds nothing to compare with but its curve")
    now = perform(run, folder / "run", folder / "results")
    seeds = [read_json(each) for each in sorted(path.parent.glob("*.json"))]
    lines = [f"{'':8} {'':18} {'then':>7} {'now':>7} {'apart':>7}   deviation over {len(seeds)} seeds"]
    for norm, tasks in before[kind].items():
        for task, then in tasks.items():
            one, other = 100 * then["mean"], 100 * now[kind][norm][task]["mean"]
            spread = f"{stdev(100 * each[kind][norm][task]['mean'] for each in seeds):.2f}" if len(seeds) > 1 else "–"
            lines.append(f"{norm:8} {task:18} {one:7.2f} {other:7.2f} {other - one:+7.2f}   {spread}")
    return "\n".join(lines)
