"""None of these, on classes never seen: `python -m benchmarks.rejection [MODEL …]`, into results/benchmarks/rejection.

Episodes of 20 test classes, one of which has no example: how many of its images are caught, at what price. Thresholds are
found as `FewShotClassifier` finds them, from five examples a class, or with one from what comes with the weights; classes
that those came from are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rankshot import data
from rankshot.data import ImageSet
from rankshot.fewshot import Classification
from rankshot.fewshot.class_means import other_classes
from rankshot.fewshot.episodes import draw_episodes
from rankshot.fewshot.evaluation import embed_all
from rankshot.fewshot.rules import prototypes
from rankshot.gallery import Embedder
from rankshot.gallery.one_shot import RATES
from rankshot.gallery.rejection import calibrated, nearness
from rankshot.hardware import circumstances
from rankshot.models.folder_files import CONFIG
from rankshot.models.shipped import folder_of
from rankshot.reproduce.calibrate import other_test_classes
from rankshot.reproduce.records import write_record
from rankshot.training import TrainConfig

from .places import FOLDER

MODELS = ("conv4-omniglot", "conv4-mini-imagenet", "conv4-cub", "resnet12-mini-imagenet")
WAY, SHOTS, EPISODES, SEED = 20, (5, 1), 1000, 0


def main() -> None:
    """Of the weights that come along, or of runs; with one example a class only where thresholds come with the weights."""
    for model in sys.argv[1:] or MODELS:
        embedder, vectors, curves = Embedder(model), torch.zeros(0), {}
        for shot in SHOTS if embedder.one_shot is not None else SHOTS[:1]:
            images = unused(model, shot)
            if len(vectors) != len(images):  # not those of the other shot
                vectors = embed_all(embedder.network, images).double()
            curves[f"{shot}-shot"] = curve(embedder, vectors, torch.from_numpy(images.labels), shot)
        results = circumstances(SEED) | {"way": WAY, "episodes": EPISODES, "asked": list(RATES), "curves": curves}
        write_record(FOLDER / "rejection" / f"{Path(model).name}.json", results)
        print(model, json.dumps(curves, indent=1), flush=True)


def unused(model: str, shot: int) -> ImageSet:
    """Of test classes that neither the weights nor their thresholds come from."""
    config = TrainConfig.from_json(folder_of(model) / CONFIG)
    images = data.load(config.data.name, "test", config.data.root)
    if shot == 1 and config.data.split != "train":
        images = other_test_classes(images, 1)
    return images.with_rotations() if config.data.rotations else images


def curve(embedder: Embedder, vectors: Tensor, labels: Tensor, shot: int) -> dict[str, Any]:
    """For every rate that was asked for: the share of known images that were turned away, and of strangers caught."""
    episodes = draw_episodes(labels, Classification(WAY, shot), EPISODES, SEED)
    taught = torch.arange(WAY - 1).repeat_interleave(shot)
    turned_away, caught = torch.zeros(len(RATES), dtype=torch.float64), torch.zeros(len(RATES), dtype=torch.float64)
    every_known, every_stranger = [], []
    for episode in episodes:
        support = vectors[episode[:-1, :shot].flatten()]
        centres = prototypes(support, taught, WAY - 1)
        trained = embedder.class_means
        others = None if trained is None else other_classes(trained, support, taught, WAY - 1)
        known, strangers = (
            nearness(vectors[part.flatten()], centres, others) for part in (episode[:-1, shot:], episode[-1:, shot:])
        )
        every_known.append(known)
        every_stranger.append(strangers)
        for at, rate in enumerate(RATES):
            rejection = calibrated(support, taught, WAY - 1, rate, others)
            threshold = rejection.threshold if rejection else embedder.one_shot.threshold(rate)  # type: ignore[union-attr]
            turned_away[at] += (known < threshold).double().mean() / len(episodes)
            caught[at] += (strangers < threshold).double().mean() / len(episodes)
    known = torch.cat(every_known).sort().values  # one threshold for all episodes, that turns away just so many
    at_rate = known[(torch.tensor(RATES) * len(known)).long()]
    ideal = (torch.cat(every_stranger)[:, None] < at_rate).double().mean(0)
    classes = len(labels.unique())  # type: ignore[no-untyped-call]
    return {
        "classes": classes,
        "turned_away": turned_away.tolist(),
        "caught": caught.tolist(),
        "caught_at_just_that_price": ideal.tolist(),
    }


if __name__ == "__main__":
    main()
