"""What one's own images, or the weights that a run begins with, say about its settings."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.data import load, prepared
from rankshot.data.folder import SIZE
from rankshot.methods import system
from rankshot.models.pretrained import CONFIG, described_in, embedder_in, folder_with_network, preprocess_in
from rankshot.preprocess import Preprocess
from rankshot.report import can_be_asked
from rankshot.terminal import counting, say
from rankshot.training import TrainConfig

USUAL = Preprocess(3, SIZE, SIZE)


def made_ready(name: str, root: str | None, wanted: Preprocess | None, whose: str) -> str:
    """What was prepared of a folder, by its own name: that stays when the folder changes, is spelt otherwise or is out of
    sight.

    wanted   how the network wants its pictures; None: as is usual
    """
    options = {} if wanted is None else options_for(wanted)
    with counting(Path(name).name) as told:
        place = prepared(name, root, told=told, **options)
    if options:
        say(f"images are made ready as {whose} wants them, {wanted}: {place}")
    return place.name


def options_for(wanted: Preprocess) -> dict[str, Any]:
    """How to prepare images so; nothing where that is the usual way."""
    if wanted.channels not in (1, 3) or replace(wanted, mean=(), deviation=()) == USUAL:
        return {}
    size = wanted.height if wanted.height == wanted.width else (wanted.height, wanted.width)
    how = {name: value for name in ("fit", "interpolation") if (value := getattr(wanted, name)) != getattr(USUAL, name)}
    return {"size": size, "channels": wanted.channels, "invert": wanted.invert, **how}


def mirrored_like_its_start(config: TrainConfig, given: Container[str]) -> TrainConfig:
    """A network that embeds images together with their mirror images goes on so, unless that was said otherwise."""
    if config.init is None or config.mirror:
        return config
    if not embedder_in(described_in(folder_with_network(config.init))).get("mirror"):
        return config
    if "--augment" in given and "flip" not in config.augment:
        say(f"{config.init} embeds images with their mirror images; without flip in --augment this run does not")
        return config
    say(f"with mirror images, as {config.init} was trained: --no-mirror declines")
    return replace(config, mirror=True, augment=tuple(dict.fromkeys([*config.augment, "flip"])))


def on_own_images(config: TrainConfig, resumed: Path | None = None) -> TrainConfig:
    """With one's own images prepared, as the weights that it begins with want them.

    resumed   the run that goes on, which knows what images it wants
    """
    wanted = None if config.init is None else preprocess_in(resumed or folder_with_network(config.init))
    name = made_ready(config.data, config.root, wanted, str(config.init))
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
    if "--validate-every" not in given and config.validate_every and not can_be_asked(config, "val"):
        changes["validate_every"] = 0
    if changes:
        told = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())
        say(f"{len(counts)} training classes with {min(counts)} image{'s' * (min(counts) != 1)} or more: {told}")
    return replace(config, **changes)
