"""Figures for the documentation from what was measured; `python -m benchmarks.tables` puts them into the pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rankshot.methods import METHODS
from rankshot.methods.method import presets_of
from rankshot.models.network import NETWORKS
from rankshot.models.shipped import FOLDER as SHIPPED
from rankshot.models.shipped import shipped
from rankshot.reproduce.plan import BENCHMARKS
from rankshot.reproduce.published import TITLES
from rankshot.reproduce.systems import systems_table
from rankshot.reproduce.tables import main_table, norm_of, trials_table
from rankshot.reproduce.tables import markdown as table

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "results" / "benchmarks"
RESULTS = FOLDER / "ranking.json"
QUICKSTART = ROOT / "results" / "quickstart.json"
SECTION = re.compile(r"<!-- (\w+): from here -->\n.*?<!-- \1: to here -->", re.DOTALL)


def tables(results: dict[str, Any]) -> str:
    """Everything, in the order of the questions that a user asks."""
    r = results
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    parts = [f"Measured on {where}. All ratios are medians of interleaved runs."]
    parts += [
        "**Loss-augmented inference**, a batch of 128, against the textbook's loops",
        table(
            ["", "textbook", "a cell", "rankshot", "ratio", "ratio of single calls"],
            [
                [
                    regime,
                    f"{x['textbook_ms']:.0f} ms",
                    f"{x['textbook_us_per_cell']:.2f} µs",
                    f"{x['rankshot_ms']:.2f} ms",
                    f"**{x['ratio']:.0f}x**",
                    f"{x['single_call_ratio']:.0f}x",
                ]
                for regime, x in r["inference"].items()
            ],
        ),
        "**Loss, forward and backward**, against pytorch-metric-learning 2.9",
        table(
            ["", "RankingLoss.paper()", "SmoothAPLoss", "ratio", "FastAPLoss", "ratio"],
            [
                [
                    f"{x['size']} images, {regime}",
                    f"{x['RankingLoss_ms']:.1f} ms",
                    f"{x['SmoothAPLoss_ms']:.0f} ms",
                    f"**{x['SmoothAPLoss_ratio']:.0f}x**",
                    f"{x['FastAPLoss_ms']:.1f} ms",
                    f"**{x['FastAPLoss_ratio']:.1f}x**",
                ]
                for regime, sizes in r["peers"].items()
                for x in sizes
            ],
        ),
        "**Beside a network**: one Conv4 training step on 128 images of 28x28",
        table(
            ["", "Conv4 step", "RankingLoss.paper()", "share"],
            [
                [regime, f"{x['Conv4_ms']:.0f} ms", f"{x['RankingLoss_ms']:.1f} ms", f"**{100 * x['share']:.1f} %**"]
                for regime, x in r["conv4"].items()
            ],
        ),
        "**Growth with the batch**, forward and backward",
        table(
            ["", *next(iter(r["growth"].values()))["ms"], "exponent"],
            [
                [regime, *(f"{ms:.0f} ms" for ms in x["ms"].values()), f"**{x['exponent']:.2f}**"]
                for regime, x in r["growth"].items()
            ],
        ),
        "**Large batches**, forward and backward in a process of their own; memory above the inputs",
        table(
            ["", "time", "peak memory"],
            [
                [f"{x['size']} images, {regime}", f"{x['seconds']:.1f} s", f"{x['peak_mib']:.0f} MiB"]
                for regime, sizes in r["memory"].items()
                for x in sizes
            ],
        ),
        "**Sorting 128 rows**: torch's stable sort, and `ranking.sorting`",
        table(
            ["columns", "torch", "packed", "ratio"],
            [
                [str(x["width"]), f"{x['torch_ms']:.2f} ms", f"{x['packed_ms']:.2f} ms", f"{x['ratio']:.1f}x"]
                for x in r["sorting"]
            ],
        ),
    ]
    return "\n\n".join(parts)


def headlines(results: dict[str, Any]) -> str:
    """The few figures of the README."""
    small, large = results["peers"]["8 a class"]
    share = max(x["share"] for x in results["conv4"].values())
    biggest = max((x for sizes in results["memory"].values() for x in sizes), key=lambda x: x["peak_mib"])
    objectives = json.loads((FOLDER / "objectives.json").read_text())
    ratios = [x["ratio"] for x in objectives["ratios"].values()]
    return "\n".join(
        [
            f"- **Real batches.** Uneven classes in any order, thousands of images: a batch of {biggest['size']:,} takes"
            f" {biggest['peak_mib']:.0f} MiB. No table of all pairs is ever made.",
            f"- **Fast.** {small['SmoothAPLoss_ratio']:.0f} times as fast as pytorch-metric-learning's Smooth-AP at"
            f" {small['size']} images and {large['SmoothAPLoss_ratio']:.0f} times at {large['size']};"
            f" {100 * share:.0f} % of a Conv4 training step on a CPU ([benchmarks](docs/benchmarks.md)). That is the"
            f" paper's objective; `RankingLoss()`, at two scales, takes {min(ratios):.0f} to {max(ratios):.0f}"
            " times as long.",
        ]
    )


def objectives() -> str:
    """What both scales cost."""
    r = json.loads((FOLDER / "objectives.json").read_text())
    rows = [
        [f"{size} images", f"{x['paper_ms']:.1f} ms", f"{x['two_scales_ms']:.1f} ms", f"**{x['ratio']:.1f}x**"]
        for size, x in r["ratios"].items()
    ]
    where = f"{r['regime']}, {r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, {r['commit'][:10]}"
    return f"{table(['', 'RankingLoss.paper()', 'RankingLoss()', 'ratio'], rows)}\n\nForward and backward, {where}."


def training() -> str:
    """The loop and the evaluator, on every machine that they were measured on."""
    results = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("training*.json"))]
    where = [r["processor"] if "+cu" in r["torch"] else f"{r['processor']}, {r['threads']} threads" for r in results]
    circumstances = "; ".join(
        f"{name}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
        for name, r in zip(where, results, strict=True)
    )
    loops = [
        [
            name,
            f"{x['bare_per_second']:.1f}",
            f"{x['loop_per_second']:.1f}",
            f"**{100 * x['share']:.0f} %**",
            ", ".join(f"{100 * a / b:.0f}" for a, b in zip(x["all"]["loop"], x["all"]["bare"], strict=True)),
        ]
        for name, x in zip(where, (r["loop"] for r in results), strict=True)
    ]
    evaluations = [
        [name, f"{x['embedding_s']:.1f} s", f"{x['episodes_s']:.1f} s", f"{x['anew_s']:.0f} s", f"**{x['ratio']:.0f}x**"]
        for name, x in zip(where, (r["evaluation"] for r in results), strict=True)
    ]
    return "\n\n".join(
        [
            f"Measured on {circumstances}.",
            "**The loop**, updates a second of Conv4 with mAP-DLM on 128 images of 28x28, validation aside",
            table(["", "bare step", "`train`", "share: median of five rounds", "each round"], loops),
            "**The evaluator**, six tasks with 1,000 episodes each",
            table(["", "embedding once", "all episodes", "embedding every episode anew", "ratio"], evaluations),
        ]
    )


def heap() -> str:
    """Training on a CPU with freed memory given back, and kept."""
    results = json.loads((FOLDER / "heap.json").read_text())
    plain, kept = results["given_back"], results["kept"]
    rows = [
        [
            name,
            f"{1000 * measured['seconds_an_update']:.0f} ms",
            f"{measured['faults_an_update']:,.0f}",
            f"{measured['peak_bytes'] / 2**20:.0f} MiB",
        ]
        for name, measured in (("given back at once", plain), ("kept", kept))
    ]
    where = f"{results['processor']}, {results['threads']} threads, torch {results['torch']}, {results['date']}"
    return "\n\n".join(
        [
            f"`python -m benchmarks.heap`, measured on {where}, commit {results['commit'][:10]}: "
            f"**{plain['seconds_an_update'] / kept['seconds_an_update']:.2f}x**.",
            table(["what an update frees is", "an update", "pages from the system", "most memory at once"], rows),
        ]
    )


def quickstart() -> str:
    """The table that `make quickstart` ends with."""
    r = json.loads(QUICKSTART.read_text())
    tasks = next(iter(r["columns"].values()))
    rows = [
        [
            task,
            *(
                f"{100 * column[task]['mean']:.1f} ± {100 * column[task]['interval']:.1f}"
                for column in r["columns"].values()
            ),
        ]
        for task in tasks
    ]
    seconds = sum(r["training_seconds"].values())
    where = f"{r['processor']}, {r['threads']} threads"
    note = f"{r['episodes']:,} episodes a task; {seconds:.0f} s of training together on {where}, {r['date']}."
    return f"{table(['accuracy, or mAP of retrieval, %', *r['columns']], rows)}\n\n{note}"


def data() -> str:
    """Preparing and loading."""
    r = json.loads((FOLDER / "data.json").read_text())
    where = f"{r['processor']}, {r['threads']} cores, {r['date']}, commit {r['commit'][:10]}"
    rows = [
        [
            f"{x['images']:,} images",
            f"{x['seconds']:.1f} s",
            f"{x['anonymous_mib']:.0f} MiB",
            f"{1e3 * x['load_seconds']:.0f} ms",
            f"{x['load_anonymous_mib']:.0f} MiB",
        ]
        for x in r["mini-imagenet"]
    ]
    draft = r["draft"]
    return "\n\n".join(
        [
            f"Measured on {where}.",
            "**mini-ImageNet from its zips**, 84x84; memory is anonymous (RssAnon), above where it stood",
            table(["", "preparing", "memory", "`load`", "memory of `load` and 100 batches of 128"], rows),
            f"**Photographs of 500x375 to 84x84**: {draft['plain_ms']:.2f} ms decoded in full, {draft['ours_ms']:.2f} ms"
            f" with JPEG draft decoding, **{draft['ratio']:.1f}x**.",
        ]
    )


def speed() -> str:
    """Whole runs of the paper on a GPU, and the methods beside one another."""
    path = FOLDER / "speed.json"
    if not path.exists():
        return "Not measured yet."
    r = json.loads(path.read_text())
    rows, whole = [], []
    for name, title in (("omniglot", "Omniglot, 28x28"), ("mini-imagenet", "mini-ImageNet, 84x84")):
        rates = r[name]["updates_per_second"]
        ours = rates["map-dlm"]
        others = [f"{rate:.0f} ({rate / ours:.2f}x)" for method, rate in rates.items() if method != "map-dlm"]
        rows.append([title, f"{ours:.0f}", *others])
        run = r[name]["whole_run"]
        whole.append(f"{title}: {run['updates']:,} updates of mAP-DLM in **{run['seconds']:.0f} s**")
    methods = list(r["omniglot"]["updates_per_second"])
    rounds = len(r["omniglot"]["all"]["map-dlm"])
    return "\n\n".join(
        [
            f"Measured on {r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}.",
            "**Whole runs** in a single process, from opening the prepared data to the last file: "
            + "; ".join(whole)
            + ".",
            f"**Updates a second** in the same loop, batches of 128; medians of {rounds} rounds in turns",
            table(["", *methods], rows),
        ]
    )


def gallery() -> str:
    r = json.loads((FOLDER / "gallery.json").read_text())
    e, g = r["embedding"], r["gallery"]
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return "\n\n".join(
        [
            f"Measured on {where}.",
            f"**Embedding JPEG files** of 84x84 by `conv4-mini-imagenet`: {e['images_a_second']['files']:.0f} images a "
            f"second, **{100 * e['of_the_bare_network']:.0f} %** of the bare network on pixels that are ready.",
            f"**A gallery of {g['vectors']:,} x {g['dimensions']}**: added in {g['add_seconds']:.1f} s, opened in "
            f"{1000 * g['open_seconds']:.1f} ms, searched for the first time in {1000 * g['first_search_seconds']:.0f} ms "
            f"(when all is read and checked), then in **{g['search_ms_a_query']:.2f} ms a query** in batches of 256.",
            f"**With a filter**, one query: {g['filtered_ms']['sql']:.0f} ms by SQL (`{{'colour': 'red'}}`), "
            f"**{g['sql_is_faster_by']:.1f} times** as fast as a function that looks at the metadata of every image.",
        ]
    )


def rejection() -> str:
    """None of these: what is caught at what price."""
    r = json.loads((FOLDER / "rejection.json").read_text())
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    rows = []
    for model in (name for name in r if name.startswith("conv4-")):
        for shot, shares in r[model].items():
            for name, key in (("known images turned away", "turned_away"), ("strangers caught", "caught")):
                rows.append([f"`{model}`", f"{shot}: {name}", *(f"{100 * share:.1f} %" for share in shares[key])])
    note = f"{r['episodes']:,} episodes of {r['way']} test classes, one of them without an example. Measured on {where}."
    return f"{note}\n\n{table(['', '`reject`', *map(str, r['asked'])], rows)}"


PHOTOGRAPHS = {
    "grocery": "Grocery: 42 products, photographs with a shorter side of 160 pixels",
    "grocery-32": "The same, made as small as 32 pixels",
    "cub": "CUB: 50 birds, whole photographs with a shorter side of 148 pixels",
    "mini-imagenet": "mini-ImageNet: 20 test classes, 84x84 pixels, which EfficientNet has seen: no few-shot figures. "
    "Measured when logistic regression had C = 1, and the class mean was the default",
}


def photographs() -> str:
    """Every network, size and rule, and how far the default is from the best of them."""
    parts = []
    for name, title in PHOTOGRAPHS.items():
        path = FOLDER / f"photographs-{name}.json"
        if not path.exists():
            continue
        r = json.loads(path.read_text())
        by_default = r["default"]
        rows: list[list[str]] = []
        found: dict[tuple[Any, ...], float] = {}
        for row in r["networks"]:
            cells = {(shot, rule): row[shot][rule]["mean"] for shot in ("1-shot", "5-shot") for rule in row[shot]}
            found |= {(row["network"], row["size"], *cell): value for cell, value in cells.items()}
            rules = list(row["5-shot"])
            rows.append(
                [
                    f"`{row['network']}`, {row['size']} pixels",
                    *(f"{cells['1-shot', rule]:.1f}" for rule in ("prototype", "logistic")),
                    *(f"{cells['5-shot', rule]:.1f}" for rule in rules),
                    f"{row['recall_at_1']:.1f}",
                ]
            )
        size = NETWORKS[by_default["network"]].about["preprocess"].height
        lines = []
        for shot in ("1-shot", "5-shot"):
            usual = found[by_default["network"], size, shot, by_default["rule"]]
            best = max((key for key in found if key[2] == shot), key=lambda key: found[key])
            how = f"`{best[0]}` at {best[1]} pixels by `{best[3]}`"
            lines.append(f"{shot}: {usual:.1f} by default, **{found[best] - usual:.1f}** below the best of all ({how}).")
        head = [
            "20-way",
            "1-shot `prototype`",
            "`logistic`",
            "5-shot `ap`",
            *(f"`{rule}`" for rule in rules[1:]),
            "Recall@1",
        ]
        where = f"{r['episodes']} episodes, {r['processor']}, {r['date']}, commit {r['commit'][:10]}."
        parts += [f"**{title}.** {' '.join(lines)} {where}", table(head, rows)]
    return "\n\n".join(parts)


def fine_tuned() -> str:
    """EfficientNet-Lite0 as it comes, and fine-tuned by default, on products that it has not learned from."""
    r = json.loads((FOLDER / "photographs-grocery-fine-tuned.json").read_text())
    first, *others = r["networks"]
    figures: dict[str, Any] = {
        "20-way 1-shot": lambda row: row["1-shot"]["prototype"]["mean"],
        "20-way 5-shot": lambda row: row["5-shot"]["prototype"]["mean"],
        "Recall@1": lambda row: row["recall_at_1"],
    }
    rows = [["as it comes", *(f"{figure(first):.1f}" for figure in figures.values())]]
    means = [[figure(row) for row in others] for figure in figures.values()]
    rows.append(["fine-tuned by default", *(f"**{mean(x):.1f}** ± {stdev(x):.1f}" for x in means)])
    where = f"{r['episodes']} episodes, {r['processor']}, {r['date']}, commit {r['commit'][:10]}"
    note = f"In %, by the class mean; {len(others)} seeds, with their deviation. {where}."
    return f"{table(['', *figures], rows)}\n\n{note}"


def defaults() -> str:
    """Settings of `RankingLoss` beside temperatures of Smooth-AP, on validation classes."""
    parts = []
    for network, rate in (("conv4", 0.003), ("efficientnet-lite0", 0.0003)):
        found = of_defaults(network, rate)
        if not found:
            continue
        labels = dict.fromkeys(label for by_label in found.values() for label in by_label)
        best = {
            data: max(mean(x) for label, x in by_label.items() if label.startswith("smooth-ap"))
            for data, by_label in found.items()
        }
        rows = []
        for label in sorted(labels, key=lambda label: (label.startswith("smooth-ap"), label)):
            cells = []
            for data, by_label in found.items():
                values = by_label.get(label, [])
                deviation = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
                mark = "**" if values and mean(values) >= best[data] else ""
                cells.append(f"{mark}{mean(values):.2f}{mark}{deviation} ({len(values)})" if values else "–")
            rows.append([LABELS.get(label, f"`{label}`"), *cells])
        title = f"**{network}**, cosine schedule from a learning rate of {rate:g}:"
        parts += [title, table(["", *found], rows)]
    return "\n\n".join(parts)


LABELS = {
    "coarse-0.03": "epsilon 0.001, smoothing 0.01, coarse weight 0.03",
    "coarse-0.1": "epsilon 0.001, smoothing 0.01, coarse weight 0.1",
    "coarse-0.3": "epsilon 0.001, smoothing 0.01, coarse weight 0.3",
    "wider-0.1": "epsilon 0.003, smoothing 0.02, coarse weight 0.1: `RankingLoss()`",
    "widest-0.1": "epsilon 0.005, smoothing 0.04, coarse weight 0.1",
    **{f"smooth-ap-{temperature}": f"Smooth-AP, temperature {temperature}" for temperature in (0.005, 0.01, 0.02, 0.05)},
}


def of_defaults(network: str, rate: float) -> dict[str, dict[str, list[float]]]:
    """Data set -> label -> retrieval among the most classes, in %, seed by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    for path in sorted((ROOT / "results" / "defaults" / network).glob(f"*/*-rate-{rate:g}/*.json")):
        *_, data, label, _ = path.parts
        measured = json.loads(path.read_text())["validation"]["running"]
        value = 100 * list(measured.values())[-1]["mean"]
        found.setdefault(data, {}).setdefault(label.partition("-rate-")[0], []).append(value)
    return found


def ready() -> str:
    """The weights that come with the package, as their cards have them."""
    evaluations = {name: json.loads((SHIPPED / name / "evaluation.json").read_text()) for name in shipped()}
    tasks = ["1-shot 5-way", "1-shot 20-way", "5-shot 20-way", "retrieval 20-way"]
    rows = [
        [
            f"`{name}`",
            *(f"{100 * r['tasks'][task]['mean']:.1f} ± {100 * r['tasks'][task]['interval']:.1f}" for task in tasks),
        ]
        for name, r in evaluations.items()
    ]
    episodes = " or ".join(sorted({f"{r['episodes']:,}" for r in evaluations.values()}))
    note = f"On its test classes, in %: {episodes} episodes a task, batch norm by running averages."
    return f"{table(['', *tasks], rows)}\n\n{note}"


def paper() -> str:
    """The tables of the README: every data set that has rows, by the norm that validation classes chose, or the paper's."""
    tables = (main_table(ROOT / "results", name, norm_of(ROOT / "results", name) or "batch") for name in BENCHMARKS)
    return "\n\n".join(text for text in tables if text)


def of_systems(name: str) -> str:
    """All systems on one data set, by the norm that validation classes chose."""
    text = systems_table(ROOT / "results", name, norm_of(ROOT / "results", name) or "batch")
    return text or "Not measured yet."


def cost_of_systems() -> str:
    """Seconds of an update, relative to mAP-DLM, wherever that was measured."""
    results = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("systems-*.json"))]
    if not results:
        return "Not measured yet."
    rows = []
    for method, title in TITLES.items():
        ratios = [r["seconds_an_update"][method] / r["seconds_an_update"]["map-dlm"] for r in results]
        rows.append([title, str(results[0]["images"][method]), *(f"{ratio:.2f}x" for ratio in ratios)])
    circumstances = "; ".join(
        f"{r['processor']}{'' if 'NVIDIA' in r['processor'] else ', ' + str(r['threads']) + ' threads'}, "
        f"{r['date']}, commit {r['commit'][:10]}, where {len(r['all']['map-dlm'])} rounds of mAP-DLM took "
        f"{1000 * min(r['all']['map-dlm']):.2f} to {1000 * max(r['all']['map-dlm']):.2f} ms an update"
        for r in results
    )
    head = ["", "images", *(r["processor"] for r in results)]
    return (
        "`python -m benchmarks.systems`: glyphs, 28x28, each system with the batch that it takes by default, in turns; "
        f"medians. Measured on {circumstances}.\n\n{table(head, rows)}"
    )


def cost_of_adaptation() -> str:
    """An update of MAML, by how the derivatives of its layers are computed."""
    rows, circumstances = [], []
    for path in sorted(FOLDER.glob("adaptation-*.json")):
        r = json.loads(path.read_text())
        circumstances.append(f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}")
        for name, result in r.items():
            if isinstance(result, dict):
                derived, written = (1000 * result["seconds_an_update"][way] for way in ("as_torch_derives", "written_out"))
                where = f"{name}, {r['processor']}"
                rows.append([where, f"{derived:.1f} ms", f"{written:.1f} ms", f"**{derived / written:.2f}x**"])
    note = f"`python -m benchmarks.adaptation`, measured on {'; '.join(circumstances)}."
    return f"{note}\n\n{table(['batches of', 'as torch derives them', 'written out', 'ratio'], rows)}"


def options_of_systems() -> str:
    """What --options and --preset take, by every system."""
    rows = [
        [
            f"`{name}`",
            ", ".join(f"`--{setting.replace('_', '-')} {value}`" for setting, value in METHODS[name].defaults.items())
            or "–",
            ", ".join(f"`{preset}`" for preset in presets_of(name)),
        ]
        for name in TITLES
    ]
    return "\n".join(
        ["| `--method` | its settings, and their defaults | `--preset` |", "|---|---|---|"]
        + [f"| {' | '.join(row)} |" for row in rows]
    )


SECTIONS = {
    "paper": paper,
    "systems_options": options_of_systems,
    "systems_omniglot": lambda: of_systems("omniglot"),
    "systems_mini_imagenet": lambda: of_systems("mini-imagenet"),
    "systems_cost": cost_of_systems,
    "systems_adaptation": cost_of_adaptation,
    "ready": ready,
    "speed": speed,
    "trials_omniglot": lambda: trials_table(ROOT / "results", "omniglot"),
    "trials_mini_imagenet": lambda: trials_table(ROOT / "results", "mini-imagenet"),
    "trials_glyphs": lambda: trials_table(ROOT / "results", "glyphs"),
    "trials_cub": lambda: trials_table(ROOT / "results", "cub"),
    "data": data,
    "gallery": gallery,
    "rejection": rejection,
    "photographs": photographs,
    "objectives": objectives,
    "fine_tuned": fine_tuned,
    "defaults": defaults,
    "headlines": lambda: headlines(json.loads(RESULTS.read_text())),
    "ranking": lambda: tables(json.loads(RESULTS.read_text())),
    "training": training,
    "heap": heap,
    "quickstart": quickstart,
}
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("benchmarks", "experiments", "systems"))]


def filled(page: Path) -> str:
    """The text of a page with its figures replaced by the last ones measured."""

    def fresh(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- {name}: from here -->\n\n{SECTIONS[name]()}\n\n<!-- {name}: to here -->"

    return SECTION.sub(fresh, page.read_text())


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page))
