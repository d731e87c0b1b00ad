"""Which network, size and rule are best on photographs of classes that nobody has taught: `rankshot classify` by default?

`python -m benchmarks.photographs NAME FOLDER` (a folder a class, or splits of such) writes
results/benchmarks/photographs-NAME.json: episodes of 20 classes, every network that is installed at several sizes, every
rule. `--small 32` makes the pictures that small first, as those of Tiny Images are. `--network RUN` measures a run instead,
at its own size. All networks but `conv4-…` and `resnet12-…` have learned from ImageNet: on mini-ImageNet's classes theirs
are no few-shot figures.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from rankshot.data import ImageSet, load, prepared
from rankshot.fewshot import Classification
from rankshot.fewshot.episodes import draw_episodes
from rankshot.fewshot.evaluation import embed_all
from rankshot.fewshot.rules import BEST, RULES, scores_by
from rankshot.gallery import Embedder
from rankshot.hardware import circumstances
from rankshot.models.strongest import strongest
from rankshot.training.fitting import preparation_for

from .places import FOLDER

WAY, SHOTS, EPISODES, SEED = 20, (1, 5), 400, 0
AT_ONCE = 50  # episodes
# Of each network its own size, and of the strongest also some below and above it.
SIZES: dict[str, tuple[int, ...]] = {
    "conv4-mini-imagenet": (84,),
    "conv4-cub": (64,),
    "resnet12-mini-imagenet": (84,),
    "efficientnet-lite0": (224,),
    "efficientnet-lite1": (240,),
    "efficientnet-lite2": (208, 260, 288, 320),
}


def images_of(folder: Path, embedder: Embedder, size: int | None, root: str | None, split: str) -> ImageSet:
    """Made ready as the network wants them, at this size."""
    how = preparation_for(embedder.preprocess)
    name = prepared(str(folder), root, **({**how, "size": size} if size is not None else how)).name
    return load(name, split, root)


def made_small(folder: Path, to: Path, size: int) -> Path:
    """The same pictures with a shorter side of so many pixels."""
    for path in sorted(folder.rglob("*.*")):
        target = to / path.relative_to(folder).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
        scale = size / min(picture.size)
        width, height = (max(size, round(side * scale)) for side in picture.size)
        picture.resize((width, height), Image.Resampling.BICUBIC).save(target)
    return to


@torch.no_grad()
def measured(vectors: Tensor, labels: Tensor) -> dict[str, Any]:
    """(n, D) unit vectors: accuracy of every rule by shots, in %, and how often the nearest other image is of the class."""
    results: dict[str, Any] = {}
    for shot in SHOTS:
        task = Classification(WAY, shot)
        drawn = draw_episodes(labels, task, EPISODES, SEED).to(vectors.device)
        taught = torch.arange(WAY, device=vectors.device).repeat_interleave(shot)
        right = torch.arange(WAY, device=vectors.device).repeat_interleave(task.per_class - shot)
        for rule in RULES:
            accuracies = []
            for episodes in torch.split(drawn, AT_ONCE):
                parts = episodes.split_with_sizes([shot, task.per_class - shot], dim=2)
                support, queries = (vectors[part.flatten(1)] for part in parts)
                answers = scores_by(rule, support, taught, WAY, queries).argmax(-1)
                accuracies.append((answers == right).double().mean(-1))
            values = 100 * torch.cat(accuracies)
            results.setdefault(f"{shot}-shot", {})[rule] = {
                "mean": values.mean().item(),
                "interval": 1.96 * values.std().item() / EPISODES**0.5,
            }
    similarities = vectors @ vectors.T
    nearest = similarities.fill_diagonal_(-2).argmax(-1)
    same = labels.to(vectors.device)[nearest] == labels.to(vectors.device)
    return {**results, "recall_at_1": 100 * same.double().mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--small", type=int)
    parser.add_argument("--network", action="append", default=[])
    parser.add_argument("--size", type=int, action="append", default=[])
    parser.add_argument("--root")
    parser.add_argument("--to", type=Path, default=FOLDER)
    options = parser.parse_args()
    folder = options.folder
    if options.small:
        folder = made_small(folder, folder.with_name(f"{folder.name}-{options.small}"), options.small)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    path = options.to / f"photographs-{options.name}.json"
    results: dict[str, Any] = {
        **circumstances(SEED),
        "way": WAY,
        "episodes": EPISODES,
        "small": options.small,
        "default": {"network": strongest(), "rule": BEST},
        "networks": [],
    }
    for network in options.network or SIZES:
        embedder = Embedder(network)
        for size in options.size or SIZES.get(network, (embedder.preprocess.height,)):
            images = images_of(folder, embedder, size, options.root, options.split)
            vectors = embed_all(embedder.network.to(device), images)
            row: dict[str, Any] = {
                "network": Path(network).name,
                "size": size,
                "classes": len(images.classes),
                "images": len(images),
            }
            row |= measured(vectors, torch.from_numpy(images.labels))
            results["networks"].append(row)
            shots = {shot: {rule: round(x["mean"], 2) for rule, x in row[shot].items()} for shot in ("1-shot", "5-shot")}
            print(network, size, shots, round(row["recall_at_1"], 2), flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
