"""What powers of the embeddings, and a part of their mean taken away, are worth on classes that were not learned."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from rankshot.models.headed import CENTRE, POWER
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER

TASKS = ("1-shot 5-way", "5-shot 5-way", "retrieval 5-way", "retrieval 16-way")


def centring() -> str:
    """The mean of four tasks for every power and share; the best of a column is bold."""
    r = json.loads((FOLDER / "centring.json").read_text())
    columns = {name: [_value(row) for row in rows] for name, rows in r["networks"].items()}
    best = {name: max(values, key=float) for name, values in columns.items()}
    body = []
    for at, settings in enumerate(next(iter(r["networks"].values()))):
        is_ours = (settings["power"], settings["share"]) == (POWER, CENTRE)
        cells = (f"**{values[at]}**" if values[at] == best[name] else values[at] for name, values in columns.items())
        label = f"power {settings['power']:g}, share {settings['share']:g}{': `--head centred`' if is_ours else ''}"
        body.append([label, *cells])
    what = f"Mean in % of {', '.join(TASKS)}, with the class mean; {r['episodes']:,} episodes."
    return (
        f"{table(['', *columns], body)}\n\n{what} "
        f"`python -m benchmarks.centring`, {r['processor']}, {r['date']}, commit {r['commit'][:10]}."
    )


def _value(row: dict[str, Any]) -> str:
    return f"{100 * mean(row['tasks'][task]['mean'] for task in TASKS):.2f}"
