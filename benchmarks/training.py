"""The loop beside a bare training step, and the evaluator beside one that embeds every episode anew.

`python -m benchmarks.training` writes results/benchmarks/training.json; with a CUDA device, training-cuda.json.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from rankshot import data, fewshot
from rankshot.data import ClassBatchSampler
from rankshot.fewshot import evaluation
from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss
from rankshot.models import Conv4
from rankshot.training import Callback, TrainConfig, train

from .places import FOLDER

SEED, ROUNDS, WARM = 0, 5, 20
EPISODES, ANEW = 1000, 20  # of each task; and how many of them are embedded anew, which takes too long for all


def bare_step(config: TrainConfig) -> Callable[[], None]:
    """The least that training can do: one batch that is always the same, forward, backward, Adam."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    glyphs = data.load("glyphs")
    images, labels = glyphs.pixels().to(device), torch.from_numpy(glyphs.labels).to(device)
    indices = ClassBatchSampler(labels, config.batch.classes, config.batch.size, seed=SEED).draw(0)
    pixels, labels = images[indices].float() / 255, labels[indices]
    model, loss = Conv4().to(device), RankingLoss.paper()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            embeddings = model(pixels)
        loss(embeddings, labels).backward()
        optimiser.step()

    return step


class Turns(Callback):
    """Told by `train` whenever it logs: then the bare step has its turn, of as many updates."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step, self.update, self.left = step, 0, 0.0
        self.updates, self.seconds = 0, {"bare": 0.0, "loop": 0.0}

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        start = _now()
        for _ in range(update - self.update):
            self.step()
        end = _now()
        if self.update >= WARM:  # all that `train` did since the last turn: updates, log, checkpoint
            self.seconds["loop"] += start - self.left
            self.seconds["bare"] += end - start
            self.updates += update - self.update
        self.update, self.left = update, end


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def loop(updates: int) -> dict[str, object]:
    """`train`, validation aside, and the bare step: turns of `log_every` updates, five rounds, medians."""
    config = TrainConfig.of(updates=WARM + updates, validate_every=0, seed=SEED, log_every=updates // 10)
    speeds: dict[str, list[float]] = {"bare": [], "loop": []}
    for _ in range(ROUNDS):
        turns = Turns(bare_step(config))
        with tempfile.TemporaryDirectory() as folder:
            train(config, Path(folder) / "run", progress=turns)
        for name, taken in turns.seconds.items():
            speeds[name].append(turns.updates / taken)
    medians = {name: statistics.median(rounds) for name, rounds in speeds.items()}
    return {
        "config": config.to_json(),
        "all": speeds,
        "bare_per_second": medians["bare"],
        "loop_per_second": medians["loop"],
        "share": statistics.median(ours / least for ours, least in zip(speeds["loop"], speeds["bare"], strict=True)),
    }


def evaluator() -> dict[str, object]:
    """Six tasks of Omniglot's kind: seconds to embed once, seconds for all episodes after that, and anew."""
    images = data.load("glyphs", "test")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Conv4().to(device).eval()
    labels, tasks = torch.from_numpy(images.labels), fewshot.tasks_for(images, ways=(5, 20), shots=(1, 5))
    rows: dict[str, list[float]] = {"embedding": [], "episodes": [], "anew": []}
    for _ in range(3):
        start = time.perf_counter()
        embeddings = fewshot.embed_all(model, images)
        rows["embedding"].append(time.perf_counter() - start)

        start = time.perf_counter()
        for task in tasks:
            drawn = fewshot.draw_episodes(labels, task, EPISODES, SEED)
            evaluation._all_at_once(embeddings, model, None, task, drawn)
        rows["episodes"].append(time.perf_counter() - start)

        start = time.perf_counter()
        fewshot.evaluate(model, images, tasks, ANEW, SEED, batch_norm="batch")
        rows["anew"].append((time.perf_counter() - start) * EPISODES / ANEW)
    medians = {name: statistics.median(rounds) for name, rounds in rows.items()}
    return {
        "tasks": [str(task) for task in tasks],
        "episodes": EPISODES,
        "episodes_anew": ANEW,
        "embedding_s": medians["embedding"],
        "episodes_s": medians["episodes"],
        "anew_s": medians["anew"],
        "ratio": medians["anew"] / (medians["embedding"] + medians["episodes"]),
    }


def main() -> None:
    on_gpu = torch.cuda.is_available()
    results = {**circumstances(SEED), "loop": loop(updates=2000 if on_gpu else 100), "evaluation": evaluator()}
    path = FOLDER / ("training-cuda.json" if on_gpu else "training.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({name: results[name] for name in ("loop", "evaluation")}, indent=1))


if __name__ == "__main__":
    main()
