"""One run, from nothing to its json: trained, measured on classes never seen by both norms, recorded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rankshot import __version__
from rankshot.fewshot import Result, evaluate, pixels_for, summary, tasks_for
from rankshot.files import write_whole
from rankshot.hardware import commit, hardware
from rankshot.models import from_pretrained
from rankshot.models.pretrained import read_json
from rankshot.training import TrainConfig, train
from rankshot.training.loop import load
from rankshot.training.run_folder import read_metrics

NORMS = ("running", "batch")


@dataclass(frozen=True)
class Questions:
    """What a trained network is asked on the test classes."""

    ways: tuple[int, ...] = (5, 20)
    shots: tuple[int, ...] = (1, 5)
    episodes: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Run:
    """name       its place below results/, without .json
    questions  None: a trial, which is judged by its validation classes alone
    """

    name: str
    config: TrainConfig
    questions: Questions | None


def result_of(run: Run, results: Path) -> dict[str, Any] | None:
    """What is recorded of a run, if it is; a record of other settings is an error."""
    path = results / f"{run.name}.json"
    if not path.exists():
        return None
    record = read_json(path)
    settings, wanted = record.get("config"), settings_of(run.config)
    if settings != wanted:
        changed = [name for name in wanted if not isinstance(settings, dict) or settings.get(name) != wanted[name]]
        raise ValueError(f"{path} was made with other settings ({', '.join(changed)}): move it away to run it again")
    return record


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """As json has them, without those that say where a run happened."""
    content: dict[str, Any] = json.loads(json.dumps(config.to_json()))
    return {name: value for name, value in content.items() if name not in ("root", "device")}


def perform(run: Run, folder: Path, results: Path, side_by_side: int = 1) -> dict[str, Any]:
    """Train in `folder` (where a run that was stopped goes on), measure, and write the json.

    side_by_side   how many runs shared the machine, which its speed depends on
    """
    standing = train(run.config, folder, resume=True, progress=Silent())
    if standing.update < run.config.updates:
        raise KeyboardInterrupt
    lines = read_metrics(folder)
    curve = [{"update": line["update"], **line["validation"]} for line in lines if "validation" in line]
    record: dict[str, Any] = {
        "name": run.name,
        "config": settings_of(run.config),
        "kept_update": standing.best_update or standing.update,
        "training_seconds": round(standing.seconds, 2),
        "updates_per_second": round(standing.update / standing.seconds, 1),
        "side_by_side": side_by_side,
        "curve": curve,
        "validation": next((line for line in curve if line["update"] == standing.best_update), None),
        "test": None if run.questions is None else measured(folder, run),
        "episodes": None if run.questions is None else run.questions.episodes,
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "torch": torch.__version__,
        "rankshot": __version__,
    }
    path = results / f"{run.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(record, indent=1) + "\n")
    return record


def measured(folder: Path, run: Run) -> dict[str, dict[str, dict[str, float]]]:
    """norm -> task -> mean and interval, on the test classes."""
    assert run.questions is not None
    asked = run.questions
    images = load(run.config, "test")
    tasks = tasks_for(images, asked.ways, asked.shots)
    model = from_pretrained(folder).to("cuda" if torch.cuda.is_available() and run.config.device != "cpu" else "cpu")
    pixels = pixels_for(model, images)
    return {
        norm: summary(evaluate(model, images, tasks, asked.episodes, asked.seed, norm, pixels=pixels)) for norm in NORMS
    }


class Silent:
    """Several runs at once would talk over one another."""

    def said(self, text: str) -> None: ...

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None: ...

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None: ...
