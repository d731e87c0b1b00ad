"""None of these with a single example a class: nothing can be left out, so the network's own threshold is taken.

It comes with the weights, from classes that they have not learned from: in episodes of one example a class, so near were
the other images to the nearest class. `python -m rankshot.reproduce.calibrate RUN` measures it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple, NotRequired, TypedDict

import numpy as np
import torch
from torch import Tensor

from rankshot.fewshot import Classification, class_means
from rankshot.fewshot.episodes import draw_episodes
from rankshot.models.folder_files import ONE_SHOT
from rankshot.schema import Between, read_json

RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
WAY, EPISODES, SEED = 20, 500, 0


Share = Annotated[float, Between(0, 1)]
Nearness = Annotated[float, Between(-2, 2)]


class Content(TypedDict):
    """What the file holds."""

    rates: tuple[Share, ...]
    thresholds: tuple[Nearness, ...]
    caught: tuple[Share, ...]
    temperature: NotRequired[float | None]
    with_class_means: NotRequired[bool]  # of earlier versions, whose nearness was another one with them


class OneShot(NamedTuple):
    """Share of known images that are less near -> how near.

    caught   share of strangers, images of a class that is not there, that are less near too
    temperature   of the nearness, where classes that the network was trained on have counted against an image
    """

    rates: tuple[float, ...]
    thresholds: tuple[float, ...]
    caught: tuple[float, ...]
    temperature: float | None = None

    def threshold(self, rate: float) -> float:
        """Of any rate between those that were measured."""
        return float(np.interp(rate, self.rates, self.thresholds))


def measured(vectors: Tensor, labels: Tensor, trained: Tensor | None = None) -> OneShot:
    """From (n, D) unit vectors of classes (n,): each episode has one class more than it shows an example of.

    trained   (classes, D), the means of those that the network was trained on
    """
    way = min(WAY, len(labels.unique()))  # type: ignore[no-untyped-call]
    episodes = draw_episodes(labels, Classification(way, 1), EPISODES, SEED)
    embeddings = vectors[episodes]  # (episodes, way, images, D)
    to_taught = embeddings[:, :, 1:] @ embeddings[:, None, :-1, 0].mT
    to_others = None if trained is None else embeddings[:, :, 1:] @ trained.to(vectors).T
    near = class_means.nearness(to_taught, to_others).double()
    known, strangers = near[:, :-1].flatten(), near[:, -1].flatten()
    thresholds = known.quantile(torch.tensor(RATES, dtype=torch.float64))
    caught = (strangers[:, None] < thresholds).double().mean(0)
    return OneShot(RATES, tuple(thresholds.tolist()), tuple(caught.tolist()), _temperature_with(trained))


def read(folder: Path) -> OneShot | None:
    """What lies with the weights, if anything."""
    if not (folder / ONE_SHOT).is_file():
        return None
    content: Content = read_json(folder / ONE_SHOT, Content)
    kept = OneShot(content["rates"], content["thresholds"], content["caught"], content.get("temperature"))
    if not len(kept.rates) == len(kept.thresholds) == len(kept.caught) > 0 or list(kept.rates) != sorted(kept.rates):
        raise ValueError(f"{folder / ONE_SHOT} is damaged: it should hold as many thresholds and shares as rates, in order")
    return kept


def known_beside(folder: Path) -> tuple[OneShot | None, Tensor | None]:
    """The thresholds and the class means that lie with weights; thresholds that were measured without these, or with
    others, are not taken."""
    thresholds, means = read(folder), class_means.read(folder)
    if thresholds is not None and thresholds.temperature != _temperature_with(means):
        thresholds = None
    return thresholds, means


def _temperature_with(means: Tensor | None) -> float | None:
    return None if means is None else class_means.TEMPERATURE
