"""Every system under one protocol: one run each with its paper's settings, and a table of them all.

Systems that learn anew for every task are made for so many classes and shots: they have a run for each, and a row of the
table takes each column from the run that was made for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankshot.methods import SYSTEMS, settings_for

from .job import Run
from .plan import BENCHMARKS, METHODS
from .published import COLUMNS, DIGITS, PUBLISHED, TITLES
from .tables import Record, markdown, means, records

DATA = ("omniglot", "mini-imagenet")
UPDATES = {"omniglot": 18_000, "mini-imagenet": 22_000}  # where a preset does not say, as for the mAP methods
FEWER = {"maml": 20_000, "meta-lstm": 20_000}  # than in their papers, for want of time; the table says so


@dataclass(frozen=True)
class Variant:
    """A run beside a system's first, for the columns whose task has `of` in its name."""

    of: str
    label: str
    preset: str


VARIANTS: dict[tuple[str, str], Variant] = {
    ("omniglot", "maml"): Variant("20-way", "maml-20-way", "omniglot-20-way"),
    ("mini-imagenet", "maml"): Variant("5-shot", "maml-5-shot", "mini-imagenet-5-shot"),
    ("mini-imagenet", "meta-lstm"): Variant("5-shot", "meta-lstm-5-shot", "mini-imagenet-5-shot"),
}


def systems(name: str) -> list[Run]:
    """The runs of one data set; those of the paper's own tables are rows there already."""
    if name not in DATA:
        return []
    benchmark = BENCHMARKS[name]
    like = benchmark.paper["map-dlm"]
    runs = []
    for method, kind in SYSTEMS.items():
        if method in METHODS:
            continue
        variant = VARIANTS.get((name, method))
        labels = {method: name if name in kind.presets else None, **({variant.label: variant.preset} if variant else {})}
        for label, preset in labels.items():
            held: dict[str, Any] = {key: like[key] for key in ("split", "validate_every") if key in like}
            settings: dict[str, Any] = {"updates": UPDATES[name], **held, **settings_for(method, preset)}
            settings |= {"updates": FEWER[method]} if method in FEWER else {}
            config = replace(benchmark.base, **settings)
            runs.append(Run(f"{name}/systems/{label}/0", config, benchmark.questions))
    return runs


def row(results: Path, name: str, method: str, norm: str) -> list[float | None]:
    """A system's figure in every column, in percent; None where it has none."""
    variant = VARIANTS.get((name, method))
    cells: list[float | None] = []
    for task in COLUMNS[name]:
        label = variant.label if variant and variant.of in task else method
        found = runs_of(results, name, label)
        has_it = bool(found) and task in found[0]["test"][norm]
        cells.append(means(found, norm, [task])[0] if has_it else None)
    return cells


def runs_of(results: Path, name: str, label: str) -> list[Record]:
    place = "paper" if label in METHODS else "systems"
    return records(results, f"{name}/{place}/{label}/*")


def systems_table(results: Path, name: str, norm: str) -> str | None:
    """Every system: as published, and here."""
    body, fewer = [], []
    for method in SYSTEMS:
        published = PUBLISHED[name].get(method)
        here = row(results, name, method, norm)
        if all(each is None for each in here):
            continue
        for label, cells in (("as published", published), ("here", here)):
            if cells is not None:
                told = ("–" if each is None else f"{each:.{DIGITS[name]}f}" for each in cells)
                body.append([f"{TITLES[method]}, {label}", *told])
        if method in FEWER and (asked := SYSTEMS[method].presets.get(name, {}).get("updates")):
            fewer.append(f"{TITLES[method]} was trained for {FEWER[method]:,} of its paper's {asked:,} updates.")
    if not body:
        return None
    table = markdown(["", *COLUMNS[name]], body)
    return "\n\n".join([table, f"Means in %, batch norm by {norm} statistics. " + " ".join(fewer)]).rstrip()
