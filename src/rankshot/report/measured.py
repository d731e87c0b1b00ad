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
    """How networks are measured: on what images, by which tasks, in how many episodes.

    Args:
        data: name or path of the data set.
        rotations: whether each class is four, by rotations.
        split: of the data set.
        images: of that split.
        tasks: what to measure.
        episodes: of each task.
        seed: of the episodes.
        batch_norm: "running" or "batch", as in `fewshot.evaluate`.
        rule: how embedding networks classify. None: each in its usual way (`rule_for`).
        root: of the prepared data.
        together: all processes measure, and each does its part.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> [str(task) for task in protocol.tasks], protocol.episodes
        (['1-shot 2-way', 'retrieval 2-way'], 10)
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
    """A network with its results.

    Args:
        name: what to call it in a table.
        model: the network.
        results: one for each task that it can answer.
        folder: of its run. None: it has none.

    Examples:
        >>> import torch
        >>> from rankshot import fewshot, report
        >>> result = fewshot.Result(fewshot.Retrieval(way=5), torch.tensor([0.5, 0.7]))
        >>> measured = report.Measured("pixels", torch.nn.Flatten(), [result], folder=None)
        >>> print(measured.name, *measured.results)
        pixels retrieval 5-way: 60.00 ± 19.60 %
    """

    name: str
    model: nn.Module
    results: Sequence[Result]
    folder: str | Path | None


def protocol_for(
    folders: Sequence[str | Path],
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
    """The same questions for several runs: on the data that they were trained on, or on `data`.

    Args:
        folders: of the runs.
        ways: classes of an episode. None: the paper's, 5 and 20, or as many as there are.
        shots: labelled images a class. None: the paper's, 1 and 5, or as many as there are.
        data: name or path of another data set. None: the runs' own.
        rotations: four classes of each, by rotations. None: as in training, where it is the same data set.
        split: "train", "val", "test", "trainval" or "all".
        root: of the prepared data. None: the runs' own.
        episodes: of each task.
        seed: of the episodes.
        batch_norm: "running" or "batch", as in `fewshot.evaluate`.
        rule: "ap", "nearest", "prototype" or "logistic". None: as `rule_for` says.

    Returns:
        The `Protocol`.

    Raises:
        TypeError: if `folders` is a single folder.
        FileNotFoundError: if a folder is not a run.
        ValueError: if the runs were trained on different data and `data` is None, a run has learned from classes of this
            split, or there are too few classes or images.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> len(protocol.images), protocol.images.classes
        (8, ('bright', 'dark'))
    """
    folders = _paths(folders)
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


def _paths(folders: Sequence[str | Path]) -> list[Path]:
    if isinstance(folders, str | Path):  # a text is a sequence too, of letters
        raise TypeError(f"folders must be a list of them, got {str(folders)!r}: write [{str(folders)!r}]")
    return [Path(folder) for folder in folders]


def unseen_protocol(folder: str | Path, episodes: int) -> Protocol | None:
    """The questions about classes that a run has not learned from: those of test, else those of validation.

    Args:
        folder: of the run.
        episodes: of each task.

    Returns:
        The `Protocol`. None: there are no such classes.

    Examples:
        A run on a folder of two classes, which are all in training:

        >>> from pathlib import Path
        >>> from PIL import Image
        >>> import rankshot
        >>> from rankshot import report, training
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> config = rankshot.TrainConfig.of(
        ...     data="pictures", root="prepared", updates=1, filters=4, batch_classes=2, batch_size=6, validate_every=0
        ... )
        >>> status = rankshot.train(config, "run", progress=training.Callback())
        >>> print(report.unseen_protocol(Path("run"), episodes=10))
        None
    """
    config = TrainConfig.from_json(Path(folder) / CONFIG)
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


def names_of(folders: Sequence[str | Path]) -> list[str]:
    """What to call runs in a table: by their method if that tells them apart, else by their folder's name.

    Args:
        folders: of the runs.

    Returns:
        A name for each.

    Examples:
        >>> from pathlib import Path
        >>> from rankshot import models, report
        >>> weights = Path(models.__file__).parent / "weights"
        >>> report.names_of([weights / "conv4-mini-imagenet", weights / "conv4-cub"])
        ['conv4-mini-imagenet', 'conv4-cub']
    """
    folders = _paths(folders)
    methods = [
        folder.name if has_name(folder) else TrainConfig.from_json(folder / CONFIG).method.name for folder in folders
    ]
    for names in (methods, [folder.resolve().name for folder in folders]):
        if len(set(names)) == len(folders):
            return names
    return [str(folder) for folder in folders]


def measure(folder: str | Path, protocol: Protocol, name: str) -> Measured:
    """Measure the best network of a run.

    Args:
        folder: of the run.
        protocol: how.
        name: what to call it in a table.

    Returns:
        The network with its results.

    Raises:
        ValueError: if it takes images of other channels, or can answer none of the tasks.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> measured = report.measure(folder, protocol, "conv4")
        >>> for result in measured.results:
        ...     print(result)
        1-shot 2-way: 100.00 ± 0.00 %
        retrieval 2-way: 100.00 ± 0.00 %
    """
    folder = Path(folder)
    takes, has = embedder_in(described_in(folder)).get("in_channels"), protocol.images.images.shape[1]
    if takes not in (None, has):
        raise ValueError(
            f"{name} takes images of {takes} channel{'s' * (takes != 1)}, and those of {protocol.data} have {has}"
        )
    return _measured(name, from_pretrained(folder), protocol, folder)


def measure_untrained(folder: str | Path, protocol: Protocol, name: str = "untrained") -> Measured:
    """Measure the network of a run as it was before the first update.

    Args:
        folder: of the run.
        protocol: how.
        name: what to call it in a table.

    Returns:
        The network with its results.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> untrained = report.measure_untrained(folder, protocol)
        >>> untrained.name, [str(result.task) for result in untrained.results]
        ('untrained', ['1-shot 2-way', 'retrieval 2-way'])
    """
    folder = Path(folder)
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
    """How a network classifies: by the protocol's rule, else by its own (`fewshot.HasRule`), else by the usual one.

    The usual rule is the paper's, "ap", on data sets that are known by name, and "logistic" on images of one's own.

    Args:
        model: the network.
        protocol: how it is measured.

    Returns:
        The rule. None: its own.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> report.rule_for(models.from_pretrained(folder), protocol)
        'logistic'
    """
    if protocol.rule is not None or isinstance(model, Answerer | HasRule):
        return protocol.rule
    return "ap" if is_name(protocol.data) else BEST


def record(measured: Measured, protocol: Protocol) -> None:
    """Write what was measured as JSON (see `evaluation_path`); for the run's own test classes also its model card.

    A network without a folder is not recorded.

    Args:
        measured: the network with its results.
        protocol: how it was measured.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> report.record(report.measure(folder, protocol, "conv4"), protocol)
        >>> report.evaluation_path(folder, protocol.data, protocol.split, protocol.root).is_file()
        True
    """
    if measured.folder is None:
        return
    folder = Path(measured.folder)
    where = (folder, protocol.data, protocol.split, protocol.root)
    path = evaluation_path(*where)
    path.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {
        "rankshot": __version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "data": protocol.data,
        "rotations": protocol.rotations,
        "split": protocol.split,
        "update": read_notes(folder / WEIGHTS).get("update"),
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
    if path.parent == folder and is_its_own(*where):
        write_card(folder)
