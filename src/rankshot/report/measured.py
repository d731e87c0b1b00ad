"""A network measured on classes it has never seen."""

from __future__ import annotations

import datetime
import json
import logging
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankshot import __version__
from rankshot.data import ImageSet
from rankshot.fewshot import Result, Task, evaluate, tasks_for
from rankshot.files import write_whole
from rankshot.models import from_pretrained
from rankshot.models.pretrained import CONFIG, read_json
from rankshot.training import TrainConfig
from rankshot.training.card import EVALUATION, write_card
from rankshot.training.loop import first_weights, load
from rankshot.training.run_folder import is_run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Protocol:
    """How to measure: the images of which split of what, which tasks, how many episodes, which batch statistics."""

    data: str
    split: str
    images: ImageSet
    tasks: Sequence[Task]
    episodes: int
    seed: int
    norm: str


@dataclass(frozen=True)
class Measured:
    """A network by its name, with its results; `folder` is its run, None for a network without one."""

    name: str
    model: nn.Module
    results: Sequence[Result]
    folder: Path | None


def protocol_for(
    folders: Sequence[Path],
    *,
    ways: Sequence[int] = (5, 20),
    shots: Sequence[int] = (1, 5),
    data: str | None = None,
    split: str = "test",
    root: str | None = None,
    episodes: int = 1000,
    seed: int = 0,
    norm: str = "running",
) -> Protocol:
    """The same questions for several runs, on what they were trained on where `data` names nothing else."""
    if not folders:
        raise ValueError("name at least one run")
    for folder in folders:
        if not is_run(folder):
            raise FileNotFoundError(f"{folder} is not a run: there is no {CONFIG} in it")
    configs = [TrainConfig.from_json(folder / CONFIG) for folder in folders]
    trained_on = {(each.data, each.rotations) for each in configs}
    if data is None and len(trained_on) > 1:
        told = ", ".join(f"{folder}: {each.data}" for folder, each in zip(folders, configs, strict=True))
        raise ValueError(f"these runs were trained on different data ({told}): say what to measure on with --data")
    chosen = replace(configs[0], data=data or configs[0].data, root=root or configs[0].root)
    images = load(chosen, split)
    return Protocol(chosen.data, split, images, tasks_for(images, ways, shots), episodes, seed, norm)


def names_of(folders: Sequence[Path]) -> list[str]:
    """What to call runs in a table: by their method where that tells them apart, else by their folder."""
    methods = [TrainConfig.from_json(folder / CONFIG).method for folder in folders]
    return methods if len(set(methods)) == len(folders) else [str(folder) for folder in folders]


def measure(folder: Path, protocol: Protocol, name: str) -> Measured:
    """The best network of a run."""
    return _measured(name, from_pretrained(folder), protocol, folder)


def measure_untrained(folder: Path, protocol: Protocol) -> Measured:
    """The network of a run as it was before the first update."""
    config = TrainConfig.from_json(folder / CONFIG)
    shape = protocol.images.images.shape[1:]
    model, _ = first_weights(config, read_json(folder / CONFIG)["model"], shape, torch.device("cpu"))
    return _measured("untrained", model, protocol, None)


def _measured(name: str, model: nn.Module, protocol: Protocol, folder: Path | None) -> Measured:
    model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    p = protocol
    log.info("measuring %s on the %s classes of %s: %d episodes of each task", name, p.split, p.data, p.episodes)
    return Measured(name, model, evaluate(model, p.images, p.tasks, p.episodes, p.seed, p.norm), folder)


def record(measured: Measured, protocol: Protocol) -> None:
    """Into the run's folder: evaluation.json, and a card that tells it."""
    if measured.folder is None:
        return
    content: dict[str, Any] = {
        "rankshot": __version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "data": protocol.data,
        "split": protocol.split,
        "episodes": protocol.episodes,
        "seed": protocol.seed,
        "norm": protocol.norm,
        "tasks": {str(each.task): {"mean": each.mean, "interval": each.interval} for each in measured.results},
        "hardware": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.processor() or platform.machine(),
        "torch": torch.__version__,
    }
    write_whole(measured.folder / EVALUATION, json.dumps(content, indent=1) + "\n")
    write_card(measured.folder)
