"""`make bench`: measure everything in one run, write results/benchmarks/ranking.json, print the tables made from it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from pytorch_metric_learning.losses import FastAPLoss, SmoothAPLoss

from rankshot import ranking
from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss
from rankshot.models import Conv4
from rankshot.ranking.sorting import sort_rows

from . import textbook
from .batches import DIMENSIONS, REGIMES, batch
from .measure import in_a_process, interleaved
from .places import RESULTS
from .tables.ranking import tables

SEED = 0


def inference(regime: str, size: int = 128) -> dict[str, float]:
    """Loss-augmented inference of a whole batch, against one cell at a time."""
    embeddings, labels = batch(size, regime, SEED)
    normalised = torch.nn.functional.normalize(embeddings, dim=-1)
    relevance, valid = ranking.relevance_of(labels)
    scores = normalised @ normalised.T
    arrays = scores.numpy(), relevance.numpy(), valid.numpy()
    cells = int((relevance.sum(-1) * (valid & ~relevance).sum(-1)).sum())

    slow = textbook.loss_augmented_ranking(arrays[0].astype(np.float64), *arrays[1:])
    fast = ranking.loss_augmented_ranking(scores.double(), relevance, valid).numpy()
    assert (slow == fast).all(), "the baseline and rankshot disagree"

    contenders: dict[str, Callable[[], object]] = {
        "textbook": lambda: textbook.loss_augmented_ranking(*arrays),
        "rankshot": lambda: ranking.loss_augmented_ranking(scores, relevance, valid),
    }
    seconds = interleaved(contenders, rounds=15)
    single = interleaved(contenders, rounds=15, turn=0.0)  # one call a turn: it finds cold caches
    return {
        "size": size,
        "cells": cells,
        "textbook_ms": seconds["textbook"] * 1e3,
        "textbook_us_per_cell": seconds["textbook"] / cells * 1e6,
        "rankshot_ms": seconds["rankshot"] * 1e3,
        "ratio": seconds["textbook"] / seconds["rankshot"],
        "single_call_ratio": single["textbook"] / single["rankshot"],
    }


def step_of(loss: Callable[..., torch.Tensor], size: int, regime: str) -> Callable[[], object]:
    """Forward and backward of a loss on fixed embeddings."""
    embeddings, labels = batch(size, regime, SEED)
    embeddings.requires_grad_()

    def step() -> None:
        embeddings.grad = None
        loss(embeddings, labels).backward()  # type: ignore[no-untyped-call]

    return step


def peers(regime: str, size: int, rounds: int) -> dict[str, float]:
    """RankingLoss beside pytorch-metric-learning's losses, forward and backward."""
    losses = {"RankingLoss": RankingLoss.paper(), "SmoothAPLoss": SmoothAPLoss(), "FastAPLoss": FastAPLoss()}
    seconds = interleaved({name: step_of(loss, size, regime) for name, loss in losses.items()}, rounds)
    ours = seconds["RankingLoss"]
    return {
        "size": size,
        **{f"{name}_ms": taken * 1e3 for name, taken in seconds.items()},
        "SmoothAPLoss_ratio": seconds["SmoothAPLoss"] / ours,
        "FastAPLoss_ratio": seconds["FastAPLoss"] / ours,
    }


def beside_a_network(regime: str, size: int = 128) -> dict[str, float]:
    """What the loss adds to one training step of Conv4 on 28x28 images: forward, backward, Adam."""
    torch.manual_seed(SEED)
    model, images = Conv4(), torch.rand(size, 1, 28, 28)
    optimiser = torch.optim.Adam(model.parameters())
    gradient = torch.randn(size, DIMENSIONS)

    def conv4() -> None:
        optimiser.zero_grad()
        model(images).backward(gradient)
        optimiser.step()

    seconds = interleaved({"Conv4": conv4, "RankingLoss": step_of(RankingLoss.paper(), size, regime)}, rounds=31)
    return {
        "size": size,
        "Conv4_ms": seconds["Conv4"] * 1e3,
        "RankingLoss_ms": seconds["RankingLoss"] * 1e3,
        "share": seconds["RankingLoss"] / seconds["Conv4"],
    }


def growth(regime: str) -> dict[str, object]:
    """Time from 512 to 4096, and the exponent between the two ends."""
    sizes = (512, 1024, 2048, 4096)
    seconds = interleaved({str(size): step_of(RankingLoss.paper(), size, regime) for size in sizes}, rounds=5)
    exponent = math.log(seconds["4096"] / seconds["512"]) / math.log(4096 / 512)
    return {"ms": {size: taken * 1e3 for size, taken in seconds.items()}, "exponent": exponent}


def memory(regime: str, size: int) -> dict[str, float]:
    seconds, peak = in_a_process("benchmarks.memory", size, regime, SEED).split()
    return {"size": size, "seconds": float(seconds), "peak_mib": int(peak) / 2**20}


def sorting(width: int) -> dict[str, float]:
    """Why rows are sorted the way they are."""
    scores = torch.randn(128, width, generator=torch.Generator().manual_seed(SEED))
    ways: dict[str, Callable[[], object]] = {
        "torch": lambda: scores.sort(dim=-1, descending=True, stable=True),
        "packed": lambda: sort_rows(scores),
    }
    seconds = interleaved(ways, rounds=31)
    return {
        "width": width,
        "torch_ms": seconds["torch"] * 1e3,
        "packed_ms": seconds["packed"] * 1e3,
        "ratio": seconds["torch"] / seconds["packed"],
    }


def main(path: Path = RESULTS) -> None:
    results = {
        **circumstances(SEED),
        "config": {"dimensions": DIMENSIONS, "loss": repr(RankingLoss.paper()), "peers": "pytorch-metric-learning 2.9.0"},
        "inference": {regime: inference(regime) for regime in REGIMES},
        "peers": {regime: [peers(regime, 128, rounds=21), peers(regime, 512, rounds=5)] for regime in REGIMES},
        "conv4": {regime: beside_a_network(regime) for regime in REGIMES},
        "growth": {regime: growth(regime) for regime in REGIMES},
        "memory": {regime: [memory(regime, 4096), memory(regime, 16384)] for regime in REGIMES},
        "sorting": [sorting(width) for width in (128, 512, 4096)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(tables(results))


if __name__ == "__main__":
    main()
