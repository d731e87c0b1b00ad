"""What powers of the embeddings, and a part of their mean taken away, are worth: `python -m benchmarks.centring`.

Without training, on the networks that come with rankshot and have learned from photographs: how `--head centred` was
chosen. Of the validation and the test classes; into results/benchmarks/centring.json. Wants mini-ImageNet and CUB prepared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankshot.data import ImageSet, load
from rankshot.fewshot import evaluate_embeddings, summary, tasks_for
from rankshot.hardware import circumstances
from rankshot.models import Mirrored, from_pretrained
from rankshot.models.headed import unit

from .places import FOLDER

NETWORKS = {"conv4-mini-imagenet": "mini-imagenet", "conv4-cub": "cub"}
POWERS, SHARES = (1.0, 0.75, 0.6, 0.5), (0.0, 0.3, 0.5, 0.7, 1.0)
WAYS = (5, 16)
EPISODES, SEED = 3000, 200
IMAGES_A_CLASS = 100  # of the training classes, for the mean
AT_ONCE = 256


@torch.no_grad()
def views(model: nn.Module, images: ImageSet) -> Tensor:
    """(2, n, D): what the network makes of every image, and of its mirror image."""
    assert isinstance(model, Mirrored)
    chunks = [chunk.float() / 255 for chunk in torch.split(images.pixels(), AT_ONCE)]
    return torch.cat([torch.stack([model.network(chunk), model.network(chunk.flip(-1))]) for chunk in chunks], 1)


def some(images: ImageSet) -> ImageSet:
    labels = np.asarray(images.labels)
    return images.only(np.concatenate([np.flatnonzero(labels == label)[:IMAGES_A_CLASS] for label in np.unique(labels)]))


def heads(of_train: Tensor, of_images: Tensor) -> Iterator[tuple[dict[str, float], Tensor]]:
    """Every power and share, and the embeddings (n, D) that they give."""
    for power, share in product(POWERS, SHARES):
        train, images = (unit(each.clamp(min=0).pow(power)) for each in (of_train, of_images))
        yield {"power": power, "share": share}, (images - share * train.mean((0, 1))).mean(0)


def main(root: str | None = None) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for name, data in NETWORKS.items():
        model = from_pretrained(name).eval()
        of_train = views(model, some(load(data, "train", root)))
        for split in ("val", "test"):
            images = load(data, split, root)
            tasks, of_images = tasks_for(images, WAYS, (1, 5)), views(model, images)
            rows = found[f"{name}, {split}"] = []
            for settings, embeddings in heads(of_train, of_images):
                results = evaluate_embeddings(embeddings, images.labels, tasks, EPISODES, SEED, rule="prototype")
                rows.append({**settings, "tasks": summary(results)})
                print(name, split, settings, *results, sep="  ", flush=True)
    about = {"episodes": EPISODES, "images_a_class": IMAGES_A_CLASS, "rule": "prototype"}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "centring.json").write_text(json.dumps({**circumstances(SEED), **about, "networks": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
