"""A gallery past one machine: what was measured on a Milvus server, and what follows from it for more images."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER

IMAGES = (10**8, 10**10)
WIDTHS = (64, 512)
NEIGHBOURS = 32  # M of HNSW, as a gallery at faiss:FOLDER has it
SHARD = 64e9  # bytes of an index that a machine is to hold: an assumption


def milvus() -> str:
    """The rehearsal."""
    r = _read("milvus")
    c, a, s, again = r["config"], r["adding"], r["searching"], r["restarting"]
    rate, memory, disk = a["vectors_a_second"], r["server_memory_bytes"], r["disk_bytes"]
    rows = [
        ["added until the kill", f"{rate['until_the_kill']:,.0f} vectors a second, all processes together"],
        ["added, the last quarter", f"{rate['last_quarter']:,.0f} vectors a second"],
        ["added, the restart included", f"{rate['of_all']:,.0f} vectors a second, {a['seconds']:.0f} s in all"],
        ["killed at", f"{a['killed_at_vectors']:,} vectors; it listened after {a['listens_again_s']:.0f} s, the next "
         f"batch was there after {a['adds_again_s']:.0f} s"],
        ["errors that the adding processes saw", f"{len(a['errors'])}"],
        ["there afterwards, read and compared", f"{r['there']['vectors']:,}; missing {r['there']['missing']}, "
         f"twice {r['there']['twice']}; in {r['there']['read_in_s']:.0f} s"],
        [f"recall@10, {c['queries']:,} queries", f"{s['recall_at_10']:.4f}"],
        ["a search by itself", _latency(s["single_ms"])],
        ["the same without waiting for writes", _latency(s["eventual_ms"])],
        [f"{c['queries']:,} queries in one call", f"{s['together_ms_a_query']:.1f} ms a query"],
        ["killed again: first answer, all loaded", f"after {again['first_answer_s']:.0f} s, recall@10 "
         f"{again['first_recall_at_10']:.4f}"],
        ["a search after that", _latency(again["single_ms"])],
        ["the server's memory", f"{_gb(memory['added'])} when all was added, {_gb(memory['searched'])} after the searches, "
         f"{_gb(memory['restarted'])} after the second restart, {_gb(memory['peak'])} at most"],
        ["its files", f"{_gb(disk['added']['all'])} when all was added, {_gb(disk['restarted']['all'])} after the second "
         f"restart, of which {_gb(disk['restarted']['insert_log'])} are vectors, ids and metadata; the rest, logs"],
    ]  # fmt: skip
    vectors = 4 * c["vectors"] * c["dimensions"]
    note = (
        f"`python -m benchmarks.milvus`: {c['vectors']:,} x {c['dimensions']} vectors in {c['clusters']:,} clusters, "
        f"{c['processes']} processes, {c['batch']:,} vectors a call, seed {r['seed']}. {c['server']}; {c['client']}. "
        f"Measured on {r['processor']}, {r['threads']} threads for the server and all processes, "
        f"{_gb(c['machine_memory_bytes'])} of memory, {r['date']}, commit {r['commit'][:10]}."
    )
    share = (
        f"The vectors by themselves are {_gb(vectors)}: the server took {memory['peak'] / vectors:.0f} times that at its "
        f"peak, and {memory['restarted'] / vectors:.0f} times in the end."
    )
    return f"{note}\n\n{table(['', 'measured'], rows)}\n\n{share}"


def embedding_on_paper() -> str:
    """Hours to embed so many images, from rates that were measured."""
    conv4 = 128 * _read("speed")["mini-imagenet"]["updates_per_second"]["map-dlm"]
    micro = _read("micro_batches")
    residual = micro["images"] / micro["seconds"]["all"]
    files = _read("gallery")["embedding"]["images_a_second"]["files"]
    decoding = 1000 / _read("data")["draft"]["ours_ms"]
    rates = {
        "Conv4, 84x84, a GPU: training (`speed.json`)": (conv4, "GPU"),
        "ResNet-12, 84x84, a GPU: training (`micro_batches.json`)": (residual, "GPU"),
        "Conv4, 84x84, JPEG files, two cores (`gallery.json`)": (files, "machine"),
        "decoding photographs of 500x375, a core (`data.json`)": (decoding, "core"),
    }
    rows = [
        [name, f"{rate:,.0f}", *(f"{_figure(count / rate / 3600)} {unit} hours" for count in IMAGES)]
        for name, (rate, unit) in rates.items()
    ]
    note = f"To keep one GPU with Conv4 busy at this rate, {_figure(conv4 / decoding)} cores would have to decode."
    return f"{table(['', 'images a second', *(_power(count) for count in IMAGES)], rows)}\n\n{note}"


def memory_on_paper() -> str:
    """Bytes of vectors and of indexes, and machines that hold them."""
    rows = []
    for width in WIDTHS:
        for name, bytes_of in INDEXES.items():
            cells = []
            for count in IMAGES:
                taken = bytes_of(count, width)
                cells.append(f"{_size(taken)}, {math.ceil(taken / SHARD):,}")
            rows.append([f"{width} dimensions: {name}", *cells])
    return table(["", *(f"{_power(count)}: memory, shards" for count in IMAGES)], rows)


def searching_on_paper() -> str:
    """Exact search and adding, as the rehearsal's figures grow with the number of vectors."""
    r = _read("milvus")
    vectors, rate = r["config"]["vectors"], r["adding"]["vectors_a_second"]["last_quarter"]
    each, taken = r["searching"]["eventual_ms"]["p50"], r["server_memory_bytes"]["peak"]
    rows = [
        ["servers of a million vectors each", *(f"{count / vectors:,.0f}" for count in IMAGES)],
        ["their memory together, at the rehearsal's peak", *(_size(taken * count / vectors) for count in IMAGES)],
        [
            "seconds of an exact query on one server, from its p50 without waiting",
            *(_figure(each / 1000 * count / vectors) for count in IMAGES),
        ],
        ["hours to add all of it to a single server", *(_figure(count / rate / 3600) for count in IMAGES)],
    ]
    return table(["64 dimensions, exact", *(_power(count) for count in IMAGES)], rows)


def _lists(count: int) -> float:
    """Of IVF: four times the root, by a usual rule."""
    return 4 * math.sqrt(count)


INDEXES: dict[str, Callable[[int, int], float]] = {
    "the vectors, float32; exact (FLAT)": lambda count, width: 4 * width * count,
    "HNSW, M = 32": lambda count, width: (4 * width + 8 * NEIGHBOURS + 4) * count,
    "IVF, float32": lambda count, width: (4 * width + 8) * count + 4 * width * _lists(count),
    "IVF, a byte a number (SQ8)": lambda count, width: (width + 8) * count + 4 * width * _lists(count),
    "IVF, product quantisation, a byte for 8 numbers": lambda count, width: (
        (width // 8 + 8) * count + 4 * width * _lists(count)
    ),
}


def _read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def _latency(ms: dict[str, float]) -> str:
    return f"p50 {ms['p50']:.0f} ms, **p95 {ms['p95']:.0f} ms**, p99 {ms['p99']:.0f} ms"


def _gb(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def _size(count: float) -> str:
    return f"{_figure(count / 1e12)} TB" if count >= 1e12 else f"{_figure(count / 1e9)} GB"


def _figure(value: float) -> str:
    """Two digits or so: more would be pretence."""
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:.2g}"


def _power(count: int) -> str:
    return f"10^{round(math.log10(count))} images"
