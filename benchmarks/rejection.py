"""None of these, on classes never seen: `python -m benchmarks.rejection [ROOT]`, into results/benchmarks/rejection.json.

Episodes of 20 test classes, one of which has no example: how many of its images are caught, at what price. Thresholds are
found as `FewShotClassifier` finds them, from five examples a class, or with one from what comes with the weights; classes
that those came from are left out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

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
from rankshot.training import TrainConfig

from .places import FOLDER

MODELS, WAY, SHOTS, EPISODES, SEED = ("conv4-omniglot", "conv4-mini-imagenet", "conv4-cub"), 20, (5, 1), 1000, 0


def main() -> None:
    root = sys.argv[1] if len(sys.argv) > 1 else None
    results = circumstances(SEED) | {"way": WAY, "episodes": EPISODES, "asked": list(RATES)}
    for model in MODELS:
        results[model] = {f"{shot}-shot": curve(Embedder(model), unused(model, shot, root), shot) for shot in SHOTS}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "rejection.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


def unused(model: str, shot: int, root: str | None) -> ImageSet:
    """Of test classes that neither the weights nor their thresholds come from."""
    config = TrainConfig.from_json(folder_of(model) / CONFIG)
    images = data.load(config.data.name, "test", root)
    if shot == 1 and config.data.split != "train":
        images = other_test_classes(images, 1)
    return images.with_rotations() if config.data.rotations else images


def curve(embedder: Embedder, images: ImageSet, shot: int) -> dict[str, Any]:
    """For every rate that was asked for: the share of known images that were turned away, and of strangers caught."""
    vectors, labels = embed_all(embedder.network, images).double(), torch.from_numpy(images.labels)
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
