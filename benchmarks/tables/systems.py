"""The paper's tables, and all systems beside one another."""

from __future__ import annotations

import json
import statistics
from typing import Any

from rankshot.cli.train_options import CALLED
from rankshot.methods import METHODS
from rankshot.methods.method import presets_of
from rankshot.reproduce.plan import BENCHMARKS
from rankshot.reproduce.published import COLUMNS, DATA_NAMES, DIGITS, PUBLISHED, TITLES
from rankshot.reproduce.systems import runs_of, systems_table
from rankshot.reproduce.tables import NORM, counted, in_percent, main_table, means, seeds_in
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER, ROOT


def paper() -> str:
    """The paper's tables: every data set that has rows."""
    tables = (main_table(ROOT / "results", name, NORM) for name in BENCHMARKS)
    return "\n\n".join(text for text in tables if text)


IN_SHORT = {  # data set -> the tasks that tell most
    "omniglot": ("1-shot 20-way", "retrieval 20-way"),
    "mini-imagenet": ("1-shot 5-way", "retrieval 20-way"),
    "cub": ("1-shot 20-way", "retrieval 20-way"),
}


ROWS_IN_SHORT = {
    "paper/siamese": "siamese, paper's recipe",
    "paper/map-dlm": "mAP-DLM, paper's recipe",
    "best/siamese": "siamese, our recipe",
    "best/smooth-ap": "Smooth-AP, our recipe",
    "best/map-ssvm": "mAP-SSVM, our recipe",
    "best/map-dlm": "mAP-DLM, our recipe",
}


def paper_in_short() -> str:
    """mAP-DLM as published and here, beside the other methods of both recipes, on two tasks of every data set."""
    results, body = ROOT / "results", []
    seeds: set[int] = set()
    for name, tasks in IN_SHORT.items():
        for task in tasks:
            published = PUBLISHED[name]["map-dlm"][COLUMNS[name].index(task)]
            runs = [seeds_in(results, f"{name}/{row}", NORM) for row in ROWS_IN_SHORT]
            seeds.update(len(found) for found in runs if found)
            figures = (f"{means(found, NORM, [task])[0]:.1f}" if found else "–" for found in runs)
            body.append([f"{DATA_NAMES[name]}, {task}", f"{published:.1f}", *figures])
    return table([f"mean of {counted(seeds)}, %", "mAP-DLM, published", *ROWS_IN_SHORT.values()], body)


def of_systems(name: str) -> str:
    """All systems on one data set."""
    text = systems_table(ROOT / "results", name, NORM)
    return text or "Not measured yet."


def cost_of_systems() -> str:
    """Seconds of an update, relative to mAP-DLM, wherever that was measured."""
    results = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("systems-*.json"))]
    if not results:
        return "Not measured yet."
    rows = []
    for method, title in TITLES.items():
        images = next((str(r["images"][method]) for r in results if method in r["images"]), None)
        if images is not None:  # one that came later is not measured everywhere yet
            rows.append([title, images, *(_ratio(r["seconds_an_update"], method) for r in results)])
    circumstances = "; ".join(
        f"{r['processor']}{'' if 'NVIDIA' in r['processor'] else ', ' + str(r['threads']) + ' threads'}, "
        f"{r['date']}, commit {r['commit'][:10]} ({len(r['all']['map-dlm'])} rounds of mAP-DLM: "
        f"{1000 * min(r['all']['map-dlm']):.2f} to {1000 * max(r['all']['map-dlm']):.2f} ms per update)"
        for r in results
    )
    head = ["", "images", *(r["processor"] for r in results)]
    return (
        "Time per update relative to mAP-DLM (`python -m benchmarks.systems`): glyphs of 28x28, each system with its "
        f"default batch; medians of interleaved rounds. Measured on {circumstances}.\n\n{table(head, rows)}"
    )


def _ratio(seconds: dict[str, float], method: str) -> str:
    return f"{seconds[method] / seconds['map-dlm']:.2f}x" if method in seconds else "–"


ADAPTATION = {  # contenders of benchmarks/adaptation.py, and what they are
    "as_torch_derives": "derivatives by torch",
    "written_out": "written out",
    "with_kernels": "with kernels",
}


def cost_of_adaptation() -> str:
    """An update of MAML, by how the derivatives of its layers are computed."""
    rows, circumstances = [], []
    for path in sorted(FOLDER.glob("adaptation-*.json")):
        r = json.loads(path.read_text())
        circumstances.append(_measured_on(r))
        for name, result in r.items():
            if isinstance(result, dict):
                seconds = [result["seconds_an_update"].get(way) for way in ADAPTATION]
                cells = ("–" if each is None else f"{1000 * each:.1f} ms" for each in seconds)
                best = min(each for each in seconds if each is not None)
                rows.append([f"{name}, {r['processor']}", *cells, f"**{seconds[0] / best:.2f}x**"])
    note = f"`python -m benchmarks.adaptation`, measured on {'; '.join(circumstances)}."
    return f"{note}\n\n{table(['preset, machine', *ADAPTATION.values(), 'ratio'], rows)}"


def _measured_on(r: dict[str, Any]) -> str:
    threads = "" if "+cu" in r["torch"] else f", {r['threads']} thread{'s' * (r['threads'] != 1)}"
    return f"{r['processor']}{threads}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"


def few_queries() -> str:
    """MAML by episodes of 20 images a class, and by those of its authors' code."""
    path = FOLDER / "few-queries.json"
    if not path.exists():
        return "Not measured yet."
    measured, rows = json.loads(path.read_text()), []
    for run, tasks in measured["runs"].items():
        ([task, theirs],) = tasks.items()
        name, _, label, _ = run.split("/")
        found = [record["test"][NORM][task] for record in runs_of(ROOT / "results", name, label)]
        ours = in_percent(found[0]) if found else "–"
        published = PUBLISHED[name]["maml"][COLUMNS[name].index(task)]
        rows.append([f"{DATA_NAMES[name]}, {task}", f"{published:.{DIGITS[name]}f}", ours, in_percent(theirs)])
    head = ["", "as published", "20 images a class", "as many queries as labelled images"]
    note = f"`python -m benchmarks.few_queries RUNS`, {measured['episodes']:,} episodes, {_measured_on(measured)}."
    return f"{note} '20 images a class' is the figure of the table of all systems.\n\n{table(head, rows)}"


def cost_of_loops() -> str:
    """Updates per second of the systems whose loops torch.compile makes faster."""
    rows, circumstances = [], []
    for path in sorted(FOLDER.glob("loops-*.json")):
        r = json.loads(path.read_text())
        circumstances.append(_measured_on(r))
        for method, result in r.items():
            if isinstance(result, dict):
                rates = [f"{statistics.median(result['updates_a_second'][way]):.1f}" for way in ("plain", "compiled")]
                preset = f", {result['preset']}" if result["preset"] else ""
                rows.append([f"{TITLES[method]}{preset}, {r['processor']}", *rates, f"**{result['ratio']:.2f}x**"])
    head = ["updates per second", "plain", "`--compile`", "ratio"]
    return f"`python -m benchmarks.loops`, measured on {'; '.join(circumstances)}.\n\n{table(head, rows)}"


def options_of_systems() -> str:
    """What --options and --preset take, by every system."""
    rows = [
        [
            f"`{name}`",
            ", ".join(
                f"`--{CALLED.get(setting, setting).replace('_', '-')} {value}`"
                for setting, value in METHODS[name].defaults.items()
            )
            or "–",
            ", ".join(f"`{preset}`" for preset in presets_of(name)),
        ]
        for name in TITLES
    ]
    return "\n".join(
        ["| `--method` | settings and their defaults | `--preset` |", "|---|---|---|"]
        + [f"| {' | '.join(row)} |" for row in rows]
    )
