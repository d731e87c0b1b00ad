"""How far the loss is from what the hardware can do: `python -m benchmarks.large_batches` on a GPU.

The floor is what every exact ranking loss must do: three matrix products (scores, and the gradient by queries and by items)
and one sort of each row, in chunks of the same size. Forward and backward, 512 dimensions, float32, medians of interleaved
runs; memory above the embeddings and their gradient. Into results/benchmarks/large_batches.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.hardware import circumstances
from rankshot.losses import FastAPLoss, RankingLoss, SmoothAPLoss

from . import batches
from .batches import REGIMES
from .places import FOLDER

SEED, DIMENSIONS, NOISE, BYTES = 0, 512, 3.0, 2**30
SIZES = (128, 1024, 4096, 8192)
LARGEST = 65536
OBJECTIVES: dict[str, Callable[[], nn.Module]] = {
    "mAP-DLM, the paper's": RankingLoss.paper,
    "mAP-DLM, both scales": RankingLoss,
    "Smooth-AP": SmoothAPLoss,
    "FastAP": FastAPLoss,
}


def batch(size: int, regime: str) -> tuple[Tensor, Tensor]:
    embeddings, labels = batches.batch(size, regime, SEED, DIMENSIONS, NOISE)
    return nn.functional.normalize(embeddings).cuda(), labels.cuda()


def floor(embeddings: Tensor) -> None:
    rows = max(1, BYTES // (64 * len(embeddings)))
    by_items, by_queries = torch.zeros_like(embeddings), torch.empty_like(embeddings)
    for start in range(0, len(embeddings), rows):
        queries = embeddings[start : start + rows]
        scores = queries @ embeddings.T
        scores.sort(dim=-1, descending=True, stable=True)
        torch.mm(scores, embeddings, out=by_queries[start : start + rows])
        by_items.addmm_(scores.T, queries)


def step(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> Callable[[], None]:
    own = embeddings.clone().requires_grad_()

    def run() -> None:
        own.grad = None
        loss(own, labels).backward()

    return run


def milliseconds(run: Callable[[], None], repeats: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / repeats


def in_a_graph(loss: nn.Module, size: int, rounds: int) -> float:
    """Milliseconds of a forward and backward pass that are replayed as a CUDA graph."""
    embeddings, labels = batch(size, REGIMES[0])
    run, stream = step(loss, embeddings, labels), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return statistics.median(milliseconds(graph.replay, 100) for _ in range(rounds))


def peak_mib(run: Callable[[], None]) -> float:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measured(size: int, regime: str, rounds: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Milliseconds, memory and ratio to the floor of each; None of what does not fit in memory."""
    embeddings, labels = batch(size, regime)
    runs: dict[str, Callable[[], None]] = {"floor": lambda: floor(embeddings)}
    runs |= {name: step(OBJECTIVES[name](), embeddings, labels) for name in names}
    memory: dict[str, float] = {}
    for name, run in list(runs.items()):
        try:
            memory[name] = peak_mib(run)
        except torch.OutOfMemoryError:
            del runs[name]
    repeats = {name: max(1, min(20, int(50 / max(0.1, milliseconds(run, 1))))) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(milliseconds(run, repeats[name]))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        name: {"ms": medians[name], "of_the_floor": medians[name] / medians["floor"], "mib": memory[name]}
        if name in medians
        else None
        for name in ("floor", *names)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER / "large_batches.json")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    results: dict[str, Any] = {**circumstances(SEED), "dimensions": DIMENSIONS, "loss": repr(RankingLoss()), "sizes": {}}
    cases = [(size, regime, options.rounds, tuple(OBJECTIVES)) for size in SIZES for regime in REGIMES]
    cases.append((LARGEST, REGIMES[0], 2, tuple(OBJECTIVES)[:2]))
    results["graph_of_128_ms"] = {sign: in_a_graph(RankingLoss.paper(sign=sign), 128, options.rounds) for sign in (1, -1)}
    print("as a CUDA graph, by sign:", results["graph_of_128_ms"], flush=True)
    for size, regime, rounds, names in cases:
        results["sizes"].setdefault(str(size), {})[regime] = found = measured(size, regime, rounds, names)
        shown = {name: x and f"{x['ms']:.2f} ms {x['of_the_floor']:.2f}x {x['mib']:.0f} MiB" for name, x in found.items()}
        print(size, regime, shown, flush=True)
        options.to.write_text(json.dumps(results, indent=1) + "\n")  # a run that is stopped leaves what it has


if __name__ == "__main__":
    main()
