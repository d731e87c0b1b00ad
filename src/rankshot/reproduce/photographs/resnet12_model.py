"""`resnet12-mini-imagenet`, as the package has it: the network and the ranked head that are best on validation classes.

The head learns anew, as `rankshot train --init NETWORK --head scale --frozen all` teaches it; then the weights are
halved, and what comes out is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from rankshot import data
from rankshot.fewshot.evaluation import embed_all
from rankshot.hardware import circumstances
from rankshot.models import from_pretrained, save_pretrained
from rankshot.preprocess import Preprocess
from rankshot.reproduce.calibrate import calibrate
from rankshot.reproduce.halve import halve
from rankshot.reproduce.records import write_record
from rankshot.schema import read_json
from rankshot.terminal import say
from rankshot.training import TrainConfig, train

from . import resnet12_heads as heads
from .resnet12 import DATA, DEVICE, weights_of

NAME = "resnet12-mini-imagenet"
RANKED = ("map-dlm", "map-ssvm")
AUGMENT = ("flip", "crop", "jitter")


def record_of(results: Path) -> Path:
    return results / "trials" / f"{NAME}.json"


def chosen(networks: Sequence[str], results: Path) -> tuple[str, heads.Trial]:
    """Of these networks and the heads that have learned on them by ranking."""
    tried = {
        (network, trial): heads.retrieved(read_json(path))
        for network in networks
        for trial in heads.trials()
        if trial.loss in RANKED and (path := heads.record_of(network, trial, results)).exists()
    }
    if not tried:
        raise FileNotFoundError(f"no head has learned by ranking on any of {', '.join(networks)}")
    return max(tried, key=lambda each: tried[each])


def perform(networks: Sequence[str], runs: Path, results: Path) -> None:
    """Into runs/resnet12-mini-imagenet; its figures into a json."""
    network, trial = chosen(networks, results)
    say(f"{NAME}: {network} with {trial.name}")
    weights = weights_of(network, runs)
    if not weights.is_file():
        raise FileNotFoundError(f"{NAME} is made of {network}, and there is no {weights}")
    trunk, run = runs / f"resnet12-{network}", runs / NAME
    if not trunk.exists():
        save_pretrained(heads.network_in(weights).cpu(), trunk, Preprocess(*data.load(DATA, "val").pixels().shape[1:]))
    config = TrainConfig.of(
        data=DATA, network="resnet12", init=str(trunk), head=trial.head, frozen=("all",), mirror=True, augment=AUGMENT,
        method=trial.loss, learning_rate=trial.rate, updates=trial.updates, schedule="cosine",
        batch_classes=heads.BATCH_CLASSES, batch_size=heads.BATCH,
        validate_every=0, log_every=trial.updates, checkpoint_every=trial.updates,
    )  # fmt: skip
    train(config, run)
    size = halve(run)
    calibrate(run)
    found = {}
    for split, episodes in (("val", heads.TRIAL_EPISODES), ("test", heads.EPISODES)):
        images = data.load(DATA, split)
        with torch.no_grad():
            vectors = embed_all(from_pretrained(run).to(DEVICE), images)
        found[split] = heads.measured(vectors, torch.from_numpy(images.labels), episodes)
    made_of = {"weights": network, "trial": asdict(trial), "bytes": size, "episodes": heads.EPISODES}
    write_record(record_of(results), {**circumstances(0), **made_of, "results": found["test"], "val": found["val"]})
