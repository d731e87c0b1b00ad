"""`rankshot train`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from rankshot import report
from rankshot.data import load, prepared
from rankshot.data.loading import own_source
from rankshot.data.store import NoClasses
from rankshot.methods import SYSTEMS, load_systems, settings_for, system
from rankshot.models.pretrained import described_in, folder_with_network, images_of
from rankshot.terminal import counting
from rankshot.training import TrainConfig, train
from rankshot.training.loop import check_apart
from rankshot.training.run_folder import is_run

from .own_images import made_ready
from .telling import typed

CONFIG = "config.json"
EPISODES = 300  # of the comparison with the weights that training began with


@dataclass(frozen=True)
class Options:
    """Learn an embedding by ranking: every image of a batch ranks all others, and the rankings get better.

    The run folder holds the settings, the best network, what was measured, and a checkpoint. Then: rankshot evaluate RUN
    """

    run: Path | None = None
    """Folder to make for this run. None: runs/DATA-METHOD, with a number where that exists."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on with the run in --run exactly where its last checkpoint stands; start it where there is none yet."""
    load: tuple[Path, ...] = ()
    """Python files with methods of your own, which are run first (see docs/systems.md)."""
    preset: str | None = None
    """Start from the settings of the method's own paper for this data set, such as omniglot or mini-imagenet."""
    config: Path | None = None
    """Take the settings from this file, such as config.json of another run; options given here come on top."""
    settings: Annotated[TrainConfig, tyro.conf.OmitArgPrefixes] = field(default_factory=TrainConfig)


def main(arguments: Sequence[str]) -> int:
    files = files_to_load(arguments)
    load_systems(files)
    start = starting_from(arguments)
    options = tyro.cli(Options, args=list(arguments), default=Options(settings=start), prog="rankshot train")
    settings = replace(options.settings, options=merged(start.options, options.settings.options))
    given = typed(arguments)
    resumed = options.run if options.resume and options.run is not None and is_run(options.run) else None
    if resumed is None and not given & {"--mirror", "--no-mirror", "--config"}:
        settings = mirrored_like_its_start(settings, given)
    settings.check()
    folder = options.run or new_folder(settings)
    check_apart(settings.data, folder, settings.root)
    if own_source(settings.data, settings.root) and (resumed is None or "--data" in given):
        settings = on_own_images(settings, resumed)
        settings = settings if resumed is not None else fitted(settings, given)
    else:
        with counting(Path(settings.data).name) as told:
            prepared(settings.data, settings.root, told=told)
    if settings.init is not None and (classes_in(settings, "test") or classes_in(settings, "val")):
        print("a comparison with the weights that it begins with comes last, on top of the time told below")
    standing = train(settings, folder, resume=options.resume)
    if standing.update < settings.updates:
        again = shlex.join([*(f"--load={file}" for file in files), "--run", str(folder), "--resume"])
        print(f"stopped after update {standing.update}; to go on: rankshot train {again}")
        return 130
    print(f"{folder}: update {standing.update}, {standing.seconds:.0f} s of training")
    if settings.init is not None:
        before_and_after(folder)
    if classes_in(settings, "test"):
        print(f"next: rankshot evaluate {shlex.join([str(folder), *(f'--load={file}' for file in files)])}")
    return 0


def mirrored_like_its_start(config: TrainConfig, given: Container[str]) -> TrainConfig:
    """A network that embeds images together with their mirror images goes on so, unless that was said otherwise."""
    if config.init is None or config.mirror:
        return config
    network = described_in(folder_with_network(config.init))
    if not network.get("embedder", network).get("mirror"):
        return config
    if "--augment" in given and "flip" not in config.augment:
        print(f"{config.init} embeds images with their mirror images; without flip in --augment this run does not")
        return config
    print(f"with mirror images, as {config.init} was trained: --no-mirror declines")
    return replace(config, mirror=True, augment=tuple(dict.fromkeys([*config.augment, "flip"])))


def on_own_images(config: TrainConfig, resumed: Path | None = None) -> TrainConfig:
    """With one's own images prepared, as the weights that it begins with want them.

    resumed   the run that goes on, which knows what images it wants
    """
    images = {} if config.init is None else images_of(resumed or folder_with_network(config.init))
    name = made_ready(config.data, config.root, images, str(config.init))
    if resumed is not None:
        began = TrainConfig.from_json(resumed / CONFIG).data
        if Path(began).exists() and Path(began).resolve() == Path(config.data).resolve():
            name = began  # by its path, from Python
        elif name != began and name.rpartition("-")[0] == began.rpartition("-")[0]:
            raise ValueError(
                f"{config.data} has changed since {resumed} was begun: leave out --data to go on with what there was then"
            )
    return replace(config, data=name)


def fitted(config: TrainConfig, given: Container[str]) -> TrainConfig:
    """One's own images may be few: batches as large as they allow, and no validation without classes for it, unless more
    was asked for."""
    counts = np.bincount(load(config.data, config.split, config.root).labels).tolist() * (4 if config.rotations else 1)
    if len(counts) < 2:
        raise ValueError(f"{config.data} has a single training class: there must be two at least to tell apart")
    classes, size = system(config.method).batch_within(counts, config.batch_classes, config.batch_size, config.options)
    changes: dict[str, Any] = {}
    if "--batch-classes" not in given and config.batch_classes != classes >= 2:
        changes["batch_classes"] = classes
    if "--batch-size" not in given and config.batch_size != size >= 2:
        changes["batch_size"] = size
    if "--validate-every" not in given and config.validate_every and not classes_in(config, "val"):
        changes["validate_every"] = 0
    if changes:
        told = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())
        print(f"{len(counts)} training classes with {min(counts)} image{'s' * (min(counts) != 1)} or more: {told}")
    return replace(config, **changes)


def classes_in(config: TrainConfig, split: str) -> bool:
    """Whether there are any that can be told apart, with two images each at least."""
    try:
        images = load(config.data, split, config.root)
    except NoClasses:
        return False
    return len(images.classes) * (4 if config.rotations else 1) >= 2 and images.smallest_class >= 2


def before_and_after(folder: Path) -> None:
    """What training has made of the weights that it began with, on classes it has not learned from."""
    try:
        protocol = report.unseen_protocol(folder, EPISODES)
        if protocol is None:
            print("nothing is held out to compare with what it began with: no other classes, with two images each")
            return
        before = report.measure_untrained(folder, protocol, "before")
    except (OSError, ValueError) as error:  # training is done and good, whatever else
        print(f"no comparison with what it began with: {error}")
        return
    print(report.text_table([before, report.measure(folder, protocol, "after")]))
    turned = ", turned ones among them" if protocol.rotations else ""
    print(f"{len(protocol.images.classes)} {protocol.split} classes of {protocol.data}{turned}, {EPISODES} episodes a task")


def merged(before: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """The options that a run starts from, with those that are given in the place of those of the same name.

    >>> merged(["tasks=16", "steps=5"], ["steps=1", "shot=5"])
    ('tasks=16', 'steps=1', 'shot=5')
    """
    return tuple({each.partition("=")[0]: each for each in (*before, *given)}.values())


def files_to_load(arguments: Sequence[str]) -> list[Path]:
    """Those of --load: what they bring, the other options may be about."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--load", type=Path, nargs="*", action="extend", default=[])
    known, _ = parser.parse_known_args(arguments)
    return list(known.load)


def starting_from(arguments: Sequence[str]) -> TrainConfig:
    """The settings that the other options change: those of --config, of the run to resume, or the method's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--method", default=TrainConfig.method)
    parser.add_argument("--preset")
    parser.add_argument("--resume", action="store_true")
    known, _ = parser.parse_known_args(arguments)
    if known.resume and known.run is None:
        raise ValueError("--resume needs to know which run: name its folder with --run")
    if known.config is not None and known.preset is not None:
        raise ValueError("--config and --preset both say what to start from: give one of them")
    if known.config is not None:
        return TrainConfig.from_json(known.config)
    if known.resume and (known.run / CONFIG).is_file():
        return TrainConfig.from_json(known.run / CONFIG)
    return TrainConfig(**settings_for(known.method, known.preset)) if known.method in SYSTEMS else TrainConfig()


def new_folder(config: TrainConfig) -> Path:
    """The first of runs/DATA-METHOD, runs/DATA-METHOD-2, … that is not there yet."""
    name = f"{Path(config.data).name or Path(config.data).resolve().name}-{config.method}"
    return next(
        path for path in (Path("runs") / (name if n == 1 else f"{name}-{n}") for n in count(1)) if not path.exists()
    )
