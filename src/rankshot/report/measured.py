"""A network measured on classes it has never seen."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankshot.data import ImageSet
from rankshot.data import load as load_images
from rankshot.data.loading import is_name
from rankshot.fewshot import Answerer, HasRule, Result, Task, can_answer, evaluate, summary, tasks_for
from rankshot.fewshot.answerer import check_batch_norm
from rankshot.fewshot.evaluation import check_episodes
from rankshot.fewshot.rules import BEST, check_rule
from rankshot.files import write_whole
from rankshot.hardware import commit, device_for, hardware
from rankshot.models import from_pretrained
from rankshot.models.folder_files import CONFIG, WEIGHTS
from rankshot.models.network import embedder_in
from rankshot.models.pretrained import described_in, preprocess_in
from rankshot.models.shipped import has_name, or_shipped
from rankshot.preprocess import Preprocess
from rankshot.schema import read_json
from rankshot.tensors import read_notes
from rankshot.training import TrainConfig
from rankshot.training.assembly import GIVEN, Objects, network_and_method
from rankshot.training.card import write_card
from rankshot.training.fitting import has_classes_to_measure
from rankshot.training.run_folder import START, classes_of, is_run, read_metrics
from rankshot.version import __version__

from .places import evaluation_path, is_its_own, of_one_data_set

log = logging.getLogger(__name__)

WAYS, SHOTS = (5, 20), (1, 5)  # of the paper


@dataclass(frozen=True)
class Protocol:
    """How to measure: the images of which split of what, which tasks, how many episodes, which batch statistics.

    rule   how embedding networks classify. None: each in its usual way (`rule_for`)
    root   of the prepared data
    together   all processes measure, and each does its part
    """

    data: str
    rotations: bool
    split: str
    images: ImageSet
    tasks: Sequence[Task]
    episodes: int
    seed: int
    batch_norm: str
    rule: str | None = None
    root: str | None = None
    together: bool = False


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
    ways: Sequence[int] | None = WAYS,
    shots: Sequence[int] | None = SHOTS,
    data: str | None = None,
    rotations: bool | None = None,
    split: str = "test",
    root: str | None = None,
    episodes: int = 1000,
    seed: int = 0,
    batch_norm: str = "running",
    rule: str | None = None,
) -> Protocol:
    """The same questions for several runs, on what they were trained on where `data` names nothing else.

    ways, shots   None: the paper's, or as many as there are classes and images
    """
    if not folders or len(set(folders)) < len(folders):
        raise ValueError("name at least one run, and each of them once")
    if ways is not None and not ways:
        raise ValueError("name at least one way")
    check_episodes(episodes)
    check_batch_norm(batch_norm)
    if rule is not None:
        check_rule(rule)
    for folder in folders:
        if not is_run(folder):
            raise FileNotFoundError(f"{folder} is not a run: there is no {CONFIG} in it{or_shipped(folder)}")
        read_metrics(folder)  # complains now, and not when everything is measured
        if data is None and "data" not in read_json(folder / CONFIG):
            raise ValueError(f"{folder} does not tell what it has learned from: say what to measure on with --data")
    configs = [TrainConfig.from_json(folder / CONFIG) for folder in folders]
    if data is None and any(config.data.name == GIVEN for config in configs):
        raise ValueError("what it has learned from was given from Python: say what to measure on with --data")
    chosen = replace(configs[0].data, name=data or _same("data", folders, configs), root=root or configs[0].data.root)
    if rotations is None:  # turned photographs are no classes, whatever characters are
        as_in_training = any(of_one_data_set(config.data, chosen) for config in configs)
        rotations = as_in_training and _same("rotations", folders, configs)
    chosen = replace(chosen, rotations=rotations)
    images = load_images(chosen.name, split, chosen.root)
    if split in ("val", "test", "all"):
        held_out = set(images.classes)
        for folder, config in zip(folders, configs, strict=True):
            if not of_one_data_set(config.data, chosen):
                continue
            if config.data.split == "trainval" and split == "val":
                raise ValueError(f"{folder} has learned from the validation classes: measure it on split 'test'")
            learned = classes_of(folder)
            if learned is None and split == "all":  # it does not tell which, but they are among these
                learned = list(load_images(chosen.name, config.data.split, chosen.root).classes)
            if seen := held_out.intersection(learned or ()):
                raise ValueError(
                    f"{folder}, or what it began with, has learned from {min(seen)!r}: one of {len(seen)} classes that are "
                    f"in split {split!r} of {chosen.name} now"
                )
    images = images.with_rotations() if chosen.rotations else images
    if ways is None:
        ways = sorted({min(way, len(images.classes)) for way in WAYS})
    if shots is None:
        shots = [shot for shot in SHOTS if shot < images.smallest_class] or SHOTS[:1]
    return Protocol(
        chosen.name,
        chosen.rotations,
        split,
        images,
        tasks_for(images, ways, shots),
        episodes,
        seed,
        batch_norm,
        rule,
        chosen.root,
    )


def unseen_protocol(folder: Path, episodes: int) -> Protocol | None:
    """What can be asked about classes that a run has not learned from: of test, else of validation; None: nothing can."""
    config = TrainConfig.from_json(folder / CONFIG)
    for split in ("test",) if config.data.split == "trainval" else ("test", "val"):
        if has_classes_to_measure(config, split):
            return protocol_for(
                [folder], ways=None, shots=None, split=split, episodes=episodes, batch_norm=config.validation.batch_norm
            )
    return None


def _same(name: str, folders: Sequence[Path], configs: Sequence[TrainConfig]) -> Any:
    """The setting that all runs share."""
    values = [config.flat()[name] for config in configs]
    if len(set(values)) > 1:
        listed = ", ".join(f"{folder}: {value}" for folder, value in zip(folders, values, strict=True))
        raise ValueError(f"these runs were trained with different {name} ({listed}): say what to measure on with --{name}")
    return values[0]


def names_of(folders: Sequence[Path]) -> list[str]:
    """What to call runs in a table: by their method where that tells them apart, else by their folder's name."""
    methods = [
        folder.name if has_name(folder) else TrainConfig.from_json(folder / CONFIG).method.name for folder in folders
    ]
    for names in (methods, [folder.resolve().name for folder in folders]):
        if len(set(names)) == len(folders):
            return names
    return [str(folder) for folder in folders]


def measure(folder: Path, protocol: Protocol, name: str) -> Measured:
    """The best network of a run."""
    takes, has = embedder_in(described_in(folder)).get("in_channels"), protocol.images.images.shape[1]
    if takes not in (None, has):
        raise ValueError(
            f"{name} takes images of {takes} channel{'s' * (takes != 1)}, and those of {protocol.data} have {has}"
        )
    return _measured(name, from_pretrained(folder), protocol, folder)


def measure_untrained(folder: Path, protocol: Protocol, name: str = "untrained") -> Measured:
    """The network of a run as it was before the first update."""
    config = TrainConfig.from_json(folder / CONFIG)
    pictures = preprocess_in(folder) or Preprocess(*protocol.images.images.shape[1:])
    model, _ = network_and_method(config, pictures, len(classes_of(folder) or ()) or 1, Objects(), folder / START)
    return _measured(name, model, protocol, None)


def _measured(name: str, model: nn.Module, protocol: Protocol, folder: Path | None) -> Measured:
    model = model.to(device_for("auto")).eval()
    p = protocol
    which = "all" if p.split == "all" else f"the {p.split}"
    log.info("measuring %s on %s classes of %s: %d episodes of each task", name, which, p.data, p.episodes)
    tasks = [task for task in p.tasks if can_answer(model, task)]
    if not tasks:
        raise ValueError(f"{name} can answer none of {', '.join(map(str, p.tasks))}: ask for other ways")
    results = evaluate(
        model, p.images, tasks, p.episodes, p.seed, p.batch_norm, rule=rule_for(model, p), together=p.together
    )
    return Measured(name, model, results, folder)


def rule_for(model: nn.Module, protocol: Protocol) -> str | None:
    """How a network classifies: as the protocol says; else by a rule of its own; else by the paper's on the data sets that
    are known by name, and by the best that is known on images of one's own."""
    if protocol.rule is not None or isinstance(model, Answerer | HasRule):
        return protocol.rule
    return "ap" if is_name(protocol.data) else BEST


def record(measured: Measured, protocol: Protocol) -> None:
    """What was found as JSON, and of a run's own test classes a card that tells it."""
    if measured.folder is None:
        return
    where = (measured.folder, protocol.data, protocol.split, protocol.root)
    path = evaluation_path(*where)
    path.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {
        "rankshot": __version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "data": protocol.data,
        "rotations": protocol.rotations,
        "split": protocol.split,
        "update": read_notes(measured.folder / WEIGHTS).get("update"),
        "episodes": protocol.episodes,
        "seed": protocol.seed,
        "rule": rule_for(measured.model, protocol) or "its own",
        "norm": "its own" if isinstance(measured.model, Answerer) else protocol.batch_norm,
        "tasks": summary(measured.results),
        "commit": commit(),
        "hardware": hardware(),
        "torch": torch.__version__,
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")
    if path.parent == measured.folder and is_its_own(*where):
        write_card(measured.folder)
