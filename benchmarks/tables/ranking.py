"""The loss: inference, growth, memory, and the figures of the README."""

from __future__ import annotations

import json
from typing import Any

from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER


def tables(results: dict[str, Any]) -> str:
    """Everything, in the order of the questions that a user asks."""
    r = results
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    parts = [f"Measured on {where}. All ratios are medians of interleaved runs."]
    parts += [
        "**Loss-augmented inference** for a batch of 128, compared with the loops of the textbook",
        table(
            ["", "textbook", "per cell", "rankshot", "ratio", "ratio of single calls"],
            [
                [
                    _shown(regime),
                    f"{x['textbook_ms']:.0f} ms",
                    f"{x['textbook_us_per_cell']:.2f} µs",
                    f"{x['rankshot_ms']:.2f} ms",
                    f"**{x['ratio']:.0f}x**",
                    f"{x['single_call_ratio']:.0f}x",
                ]
                for regime, x in r["inference"].items()
            ],
        ),
        "**Loss, forward and backward**, compared with the losses of pytorch-metric-learning 2.9",
        table(
            ["", "RankingLoss.paper()", "SmoothAPLoss", "ratio", "FastAPLoss", "ratio"],
            [
                [
                    f"{x['size']} images, {_shown(regime)}",
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
        "**Share of a training step**: Conv4 on 128 images of 28x28",
        table(
            ["", "Conv4 step", "RankingLoss.paper()", "share"],
            [
                [
                    _shown(regime),
                    f"{x['Conv4_ms']:.0f} ms",
                    f"{x['RankingLoss_ms']:.1f} ms",
                    f"**{100 * x['share']:.1f} %**",
                ]
                for regime, x in r["conv4"].items()
            ],
        ),
        "**Growth with the batch**, forward and backward",
        table(
            ["", *next(iter(r["growth"].values()))["ms"], "exponent"],
            [
                [_shown(regime), *(f"{ms:.0f} ms" for ms in x["ms"].values()), f"**{x['exponent']:.2f}**"]
                for regime, x in r["growth"].items()
            ],
        ),
        "**Large batches**, forward and backward, each in its own process; memory beyond that of the inputs",
        table(
            ["", "time", "peak memory"],
            [
                [f"{x['size']} images, {_shown(regime)}", f"{x['seconds']:.1f} s", f"{x['peak_mib']:.0f} MiB"]
                for regime, sizes in r["memory"].items()
                for x in sizes
            ],
        ),
        "**Sorting 128 rows**: the stable sort of torch, compared with `ranking.sorting`",
        table(
            ["columns", "torch", "`ranking.sorting`", "ratio"],
            [
                [str(x["width"]), f"{x['torch_ms']:.2f} ms", f"{x['packed_ms']:.2f} ms", f"{x['ratio']:.1f}x"]
                for x in r["sorting"]
            ],
        ),
    ]
    return "\n\n".join(parts)


def _shown(regime: str) -> str:
    """How a table writes a regime of the json files."""
    return regime.replace(" a class", " per class")


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
            f" paper's objective; `RankingLoss()`, at two scales, takes up to {max(ratios):.1f}"
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
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    note = f"Forward and backward, {_shown(r['regime'])}. Measured on {where}."
    return f"{table(['', 'RankingLoss.paper()', 'RankingLoss()', 'ratio'], rows)}\n\n{note}"


def large_batches() -> str:
    """On a GPU, beside what the hardware must do in any case."""
    r = json.loads((FOLDER / "large_batches.json").read_text())
    rows = []
    for size, regimes in r["sizes"].items():
        for regime, found in regimes.items():
            cells = [
                "–" if x is None else f"{x['ms']:.1f} ms, **{x['of_the_floor']:.1f}x**, {x['mib']:,.0f} MiB"
                for name in LARGE
                for x in [found.get(name)]
            ]
            rows.append([f"{int(size):,} images, {_shown(regime)}", f"{found['floor']['ms']:.1f} ms", *cells])
    where = f"{r['processor']}, {r['dimensions']} dimensions, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    graph = {sign: f"{ms:.2f} ms" for sign, ms in r["graph_of_128_ms"].items()}
    note = (
        f"Forward and backward on {where}. A dash: the batch does not fit in memory, or was not measured. In a CUDA graph "
        f"that you record yourself, 128 images take {graph['1']}, and {graph['-1']} with the negative update."
    )
    return f"{table(['', 'floor', *LARGE.values()], rows)}\n\n{note}"


LARGE = {
    "mAP-DLM, the paper's": "`RankingLoss.paper()`",
    "mAP-DLM, both scales": "`RankingLoss()`",
    "Smooth-AP": "`SmoothAPLoss()`",
    "FastAP": "`FastAPLoss()`",
}


def micro_batches() -> str:
    r = json.loads((FOLDER / "micro_batches.json").read_text())
    peaks = {name: f"{mib / 1024:.2f} GiB" for name, mib in r["peak_mib"].items()}
    where = f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return (
        f"{r['images']:,} images of 84x84 through ResNet-12 in micro-batches of {r['micro_batch']} need "
        f"{peaks['all']} of memory at most. One micro-batch alone needs {peaks['one']}: **{r['ratio']:.2f}x** ({where})."
    )
