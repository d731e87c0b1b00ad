"""A head for ResNet-12, learned by ranking the classes that it has classified.

The network stays as it is and embeds mini-ImageNet once; heads learn from these embeddings, with more or fewer weights, by
several losses. They are judged on the validation classes; of every kind of head and loss the best is measured on the test
classes. Beside them stand the network without a head, and its embeddings less their mean, which no ranking has a part in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot import data, fewshot
from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss, SmoothAPLoss, SupConLoss
from rankshot.methods import Context, LossMethod
from rankshot.models.headed import head_for
from rankshot.models.network import NETWORKS, build
from rankshot.randomness import generator_for
from rankshot.reproduce.records import write_record
from rankshot.schema import read_json
from rankshot.tensors import read_tensors
from rankshot.terminal import say
from rankshot.vectors import unit_vectors

from .head_alone import learn
from .resnet12 import DATA, DEVICE, cropped, weights_of

FOLDER = Path("trials", "deep-heads")  # of the json files, below results/, in a folder for each network
DIMENSIONS, CLASSES, BATCH_CLASSES, BATCH = 640, 64, 32, 256
AT_ONCE, CROPS, SMALLEST_CROP = 256, 3, 0.35
RULES, TRIAL_EPISODES, EPISODES, SEED = ("prototype", "logistic"), 2000, 10_000, 1
LOSSES: dict[str, Callable[[], nn.Module]] = {
    "map-dlm": RankingLoss,
    "map-ssvm": lambda: RankingLoss(framework="ssvm"),
    "map-dlm-paper": lambda: RankingLoss.paper("dlm"),
    "smooth-ap": SmoothAPLoss,
    "supcon": SupConLoss,
}


@dataclass(frozen=True)
class Trial:
    """A head, what it learns by, how fast and how long; the plain network and its centred embeddings have no loss."""

    head: str
    loss: str = ""
    rate: float = 0.0
    updates: int = 0

    @property
    def name(self) -> str:
        return "-".join([self.head, *([self.loss, f"rate-{self.rate:g}", f"updates-{self.updates}"] if self.loss else [])])


def trials() -> Iterator[Trial]:
    yield from (Trial("none"), Trial("centred"))
    for loss, rate, updates in product(LOSSES, (0.001, 0.003, 0.01), (75, 150, 300)):
        yield Trial("scale", loss, rate, updates)
    for loss, rate in product(LOSSES, (0.00003, 0.0001, 0.0003)):
        yield Trial("linear", loss, rate, 150)


def network_in(weights: Path) -> nn.Module:
    network = build({"name": "resnet12"}, NETWORKS["resnet12"].about["preprocess"])
    stored = {name.removeprefix("trunk."): x for name, x in read_tensors(weights).items() if name.startswith("trunk.")}
    network.load_state_dict({name: x.float() if x.is_floating_point() else x for name, x in stored.items()})
    return network.to(DEVICE).eval()


@torch.no_grad()
def seen(network: nn.Module, pixels: Tensor, crops: int) -> Tensor:
    """(n, 1 + crops, D) unit vectors: of whole images with their mirror images, and of random parts of them."""
    random, parts = generator_for(0, "crops", device=DEVICE), []
    for some in pixels.split(AT_ONCE):  # type: ignore[no-untyped-call]
        images = some.to(DEVICE).float() / 255
        views = [network(images) + network(images.flip(-1))]
        views += [network(cropped(images, SMALLEST_CROP, images.shape[-1], random)) for _ in range(crops)]
        parts.append(torch.stack([unit_vectors(view) for view in views], 1))
    return torch.cat(parts)


def measured(vectors: Tensor, labels: Tensor, episodes: int) -> dict[str, Any]:
    """Classification by both rules, and retrieval."""
    retrieval, found = fewshot.Retrieval(min(20, int(labels.max()) + 1)), {}
    for rule in RULES:
        tasks: list[fewshot.Task] = [fewshot.Classification(5, 1), fewshot.Classification(5, 5)]
        tasks += [retrieval] if rule == RULES[0] else []
        found[rule] = fewshot.summary(fewshot.evaluate_embeddings(vectors, labels, tasks, episodes, SEED, rule))
    return found


def head_of(trial: Trial, views: Tensor, labels: Tensor) -> nn.Module:
    torch.manual_seed(0)
    if not trial.loss:
        head = head_for(DIMENSIONS, "scale").to(DEVICE)
        if trial.head == "centred":
            head.offset.data = views[:, 0].mean(0)
        return head
    head = head_for(DIMENSIONS, trial.head).to(DEVICE)  # type: ignore[arg-type]
    method = LossMethod(Context(DIMENSIONS, CLASSES, BATCH_CLASSES, BATCH), LOSSES[trial.loss]())
    learn(head, method.to(DEVICE), views, labels, updates=trial.updates, rate=trial.rate)
    return head


def record_of(network: str, trial: Trial, results: Path, kind: str = "trials") -> Path:
    """Where the json of a trial lies; kind: "test" is of those that were chosen."""
    return results / FOLDER / f"{network}-0" / kind / f"{trial.name}.json"


def chosen(network: str, results: Path) -> list[Trial]:
    """Of every kind of head and loss whose trials are all there: the one that finds validation images best."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials():
        groups.setdefault((trial.head, trial.loss), []).append(trial)

    def judged(trial: Trial) -> float:
        return retrieved(read_json(record_of(network, trial, results)))

    there = [some for some in groups.values() if all(record_of(network, trial, results).exists() for trial in some)]
    return [max(some, key=judged) for some in there]


def perform(network: str, runs: Path, results: Path) -> None:
    """All that have no json yet, on the network of one trial."""
    weights = weights_of(network, runs)
    if not weights.is_file():
        raise FileNotFoundError(f"heads learn from what {network} embeds, and there is no {weights}")
    sets = {split: data.load(DATA, split) for split in ("train", "val", "test")}
    trunk = network_in(weights)
    views = {split: seen(trunk, images.pixels(), CROPS if split == "train" else 0) for split, images in sets.items()}
    labels = {split: torch.from_numpy(images.labels) for split, images in sets.items()}
    tried(network, views, labels, results)


def tried(network: str, views: Mapping[str, Tensor], labels: Mapping[str, Tensor], results: Path) -> None:
    """Heads for embeddings that are there: first all trials, by validation classes; then the chosen, by test classes.

    views   of every split, (n, V, D); of a head's answer to the first of them the figures are
    """
    for kind, split, episodes in (("trials", "val", TRIAL_EPISODES), ("test", "test", EPISODES)):
        for trial in trials() if kind == "trials" else chosen(network, results):
            path = record_of(network, trial, results, kind)
            if path.exists():
                continue
            start = time.perf_counter()
            head = head_of(trial, views["train"], labels["train"].to(DEVICE))
            how = {"seconds": time.perf_counter() - start, "images_a_class": int(labels["train"].bincount().max())}
            with torch.no_grad():
                found = measured(head(views[split][:, 0]), labels[split], episodes)
            record = {**circumstances(0), "weights": network, "trial": asdict(trial), **how, "episodes": episodes}
            write_record(path, {**record, "results": found})
            say(f"{network} {trial.name}, {split} classes: retrieval {100 * retrieved({'results': found}):.2f}")


def retrieved(record: Mapping[str, Any]) -> float:
    """What heads are chosen by: retrieval among all classes of a split."""
    of_all = record["results"]["prototype"]
    return next(float(found["mean"]) for task, found in of_all.items() if task.startswith("retrieval"))
