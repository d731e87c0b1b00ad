"""Networks, sizes and rules on photographs."""

from __future__ import annotations

import json
from statistics import mean, stdev
from typing import Any

from rankshot.models.network import NETWORKS
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER

PHOTOGRAPHS = {
    "grocery": "Grocery: 42 products, photographs with a shorter side of 160 pixels",
    "grocery-32": "Grocery again, scaled down to 32 pixels",
    "cub": "CUB: 50 birds, whole photographs with a shorter side of 148 pixels",
    "mini-imagenet": "mini-ImageNet: 20 test classes, 84x84 pixels, which EfficientNet has learned: no few-shot figures",
}


def embedding() -> str:
    """From pictures and files to vectors, beside the bare network, on every machine that was measured."""
    parts = []
    for path in sorted(FOLDER.glob("embedding-*.json")):
        r = json.loads(path.read_text())
        rows = []
        for name, found in r["networks"].items():
            rates = found["images_a_second"]
            bare = max(rate for contender, rate in rates.items() if contender.startswith("bare"))
            columns = (bare, rates["pictures"], rates["files"], rates["decoding"])
            share = f"**{100 * found['share_of_the_bare_network']:.0f} %**"
            rows.append([f"`{name}`, {found['size']} pixels", *(f"{rate:,.0f}" for rate in columns), share])
        head = [
            "images per second",
            "bare network",
            "from decoded images",
            "from files",
            "decoding alone",
            "decoded / bare",
        ]
        parts.append(f"{table(head, rows)}\n\n{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}.")
    return "\n\n".join(parts)


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
            how = f"`{best[0]}` at {best[1]} pixels with `{best[3]}`"
            below = f"**{found[best] - usual:.1f}** below the best of all ({how})"
            lines.append(f"{shot}: {usual:.1f} by default, {below if found[best] > usual else 'the best of all'}.")
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
    """EfficientNet-Lite0 without fine-tuning, and fine-tuned by default, on products that it has not learned from."""
    r = json.loads((FOLDER / "photographs-grocery-fine-tuned.json").read_text())
    first, *others = r["networks"]
    figures: dict[str, Any] = {
        "20-way 1-shot": lambda row: row["1-shot"]["prototype"]["mean"],
        "20-way 5-shot": lambda row: row["5-shot"]["prototype"]["mean"],
        "Recall@1": lambda row: row["recall_at_1"],
    }
    rows = [["not fine-tuned", *(f"{figure(first):.1f}" for figure in figures.values())]]
    means = [[figure(row) for row in others] for figure in figures.values()]
    rows.append(["fine-tuned with the defaults", *(f"**{mean(x):.1f}** ± {stdev(x):.1f}" for x in means)])
    where = f"{r['episodes']} episodes, {r['processor']}, {r['date']}, commit {r['commit'][:10]}"
    note = f"In %, with the class mean as decision rule; {len(others)} seeds, ± their standard deviation. {where}."
    return f"{table(['', *figures], rows)}\n\n{note}"
