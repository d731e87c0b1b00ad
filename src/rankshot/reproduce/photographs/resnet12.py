"""What makes ranking help a deep network that learns from nothing but mini-ImageNet.

ResNet-12 learns the 64 training classes: always by classifying them; in most trials also by
telling which way an image was turned; and beside that by mAP-DLM, where either images of a class or views of one image are
relevant to each other, on a projection that is thrown away (or on the embedding that is kept). Judged on the validation
classes.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot import data, fewshot
from rankshot.data.augmentation import jitter
from rankshot.fewshot.evaluation import embed_all
from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss
from rankshot.models.mirrored import Mirrored
from rankshot.models.network import NETWORKS, build
from rankshot.randomness import generator_for
from rankshot.reproduce.halve import halved
from rankshot.reproduce.records import write_record
from rankshot.tensors import read_tensors, write_tensors
from rankshot.terminal import say

FOLDER = Path("trials", "deep")  # of the json files, below results/
DATA, EPISODES = "mini-imagenet", 2000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RULES = ("ap", "prototype", "logistic")
WARMTH = 4.0  # temperature of distillation


@dataclass(frozen=True)
class Trial:
    """What a trial learns by.

    updates     of the network
    after       another trial, whose network it goes on from
    views       of every image, each with its own crop and colours
    turned      how many of these are turned, by 90, 180 or 270 degrees in turn; a head tells by how much
    rank        what is relevant to a view: nothing ("", no ranking), views of the same class ("classes"; upright ones
                alone), those of the same class turned alike ("turned"), or the other views of its own image ("images")
    projection  dimensions of what is ranked; 0: the embedding itself
    distil      weight of the classes as the network that it goes on from sees them
    sizes       share of the updates until which images have so many pixels a side: small ones are faster
    """

    updates: int = 5000
    after: str = ""
    views: int = 4
    turned: int = 2
    rank: str = ""
    weight: float = 1.0
    projection: int = 128
    framework: str = "dlm"
    paper: bool = False
    distil: float = 0.0
    classes: int = 32
    per_class: int = 4
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    smallest_crop: float = 0.35  # of the area of an image
    sizes: tuple[tuple[float, int], ...] = ((1.0, 84),)


TRIALS = {
    "classes": Trial(views=1, turned=0, classes=64),
    "rotations": Trial(),
    "rotations-rank": Trial(rank="classes"),
    "rotations-rank-turned": Trial(rank="turned"),
    "rotations-rank-images": Trial(rank="images"),
    "rotations-rank-embedding": Trial(rank="classes", projection=0, weight=0.3),
    "rotations-rank-ssvm": Trial(rank="classes", framework="ssvm"),
    "rotations-rank-paper": Trial(rank="classes", paper=True),
    "base": Trial(20_000, sizes=((0.7, 64), (1.0, 84))),
}


def _after_base(updates: int = 4000, **settings: Any) -> Trial:
    return Trial(updates, "base", learning_rate=0.05, **settings)


TRIALS |= {
    "on": _after_base(),
    "on-images": _after_base(rank="images"),
    "on-images-embedding": _after_base(rank="images", projection=0, weight=0.3),
    "on-images-ssvm": _after_base(rank="images", framework="ssvm"),
    "on-classes": _after_base(rank="classes"),
    "on-classes-embedding": _after_base(rank="classes", projection=0, weight=0.1),
    "on-distil": _after_base(3000, distil=1.0),
    "on-distil-images": _after_base(3000, distil=1.0, rank="images"),
}


class Network(nn.Module):
    """ResNet-12 and the heads that it learns with."""

    def __init__(self, classes: int, projection: int) -> None:
        super().__init__()
        self.trunk = build({"name": "resnet12"}, NETWORKS["resnet12"].about["preprocess"])
        width = int(self.trunk.embedding_dim)  # type: ignore[arg-type]
        self.classifier, self.direction = nn.Linear(width, classes), nn.Linear(width, 4)
        hidden = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, projection)] if projection else [nn.Identity()]
        self.projection = nn.Sequential(*hidden)


def cropped(images: Tensor, smallest: float, size: int, random: torch.Generator) -> Tensor:
    """Random parts of them, resized to `size` pixels a side and mirrored by chance; colours by chance too."""
    area, shape, x, y, side, *_ = torch.rand(6, len(images), device=images.device, generator=random)
    area, shape = smallest + (1 - smallest) * area, (shape - 0.5) * 2 * math.log(4 / 3)
    widths, heights = ((area.sqrt() * (sign * shape / 2).exp()).clamp(max=1) for sign in (1, -1))
    theta = torch.zeros(len(images), 2, 3, device=images.device)
    theta[:, 0, 0], theta[:, 1, 1] = widths * torch.where(side < 0.5, -1.0, 1.0), heights
    theta[:, 0, 2], theta[:, 1, 2] = (1 - widths) * (2 * x - 1), (1 - heights) * (2 * y - 1)
    grid = nn.functional.affine_grid(theta, [*images.shape[:2], size, size], align_corners=False)
    parts = nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    return jitter(parts, torch.rand(len(images), 7, device=images.device, generator=random))


class Batches:
    """Views of `classes` classes with `per_class` images each, on the device."""

    def __init__(self, trial: Trial, seed: int) -> None:
        images = data.load(DATA)
        self.trial, self.seed, self.count = trial, seed, len(images.labels)
        self.pixels = images.pixels().to(DEVICE)
        labels = torch.from_numpy(images.labels)
        self.members = labels.argsort(stable=True).view(len(images.classes), -1)  # every class has as many
        self.random = generator_for(seed, "deep", device=DEVICE)

    def draw(self, step: int, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Pixels, class, image and quarter turns of every view; upright views come first."""
        trial, drawn = self.trial, generator_for(self.seed, step)
        chosen = torch.randperm(len(self.members), generator=drawn)[: trial.classes]
        places = torch.rand(len(chosen), self.members.shape[1], generator=drawn).topk(trial.per_class).indices
        indices = self.members[chosen].gather(1, places).flatten().to(DEVICE)
        whole = self.pixels[indices].float() / 255
        upright = trial.views - trial.turned
        quarters = [0] * upright + [1 + (step + view) % 3 for view in range(trial.turned)]
        views = [cropped(whole, trial.smallest_crop, size, self.random).rot90(turns, (2, 3)) for turns in quarters]
        known = chosen.repeat_interleave(trial.per_class).to(DEVICE).repeat(trial.views)
        image = torch.arange(len(indices), device=DEVICE).repeat(trial.views)
        return torch.cat(views), known, image, torch.tensor(quarters, device=DEVICE).repeat_interleave(len(indices))


def rate_at(trial: Trial, step: int) -> float:
    """It rises for 200 updates, and falls as a cosine does."""
    return trial.learning_rate * min(1.0, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * step / trial.updates))


def _compiled(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """On a GPU, where it is worth the minute that it takes."""
    return torch.compile(module, dynamic=False) if DEVICE == "cuda" else module


def learn(trial: Trial, seed: int, start: Path | None) -> tuple[Network, dict[str, float]]:
    batches = Batches(trial, seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    network = Network(len(batches.members), trial.projection).to(DEVICE).train()
    teacher = None
    if start is not None:
        known = {name: x for name, x in read_tensors(start).items() if not name.startswith("projection.")}
        network.load_state_dict(known, strict=False)
        if trial.distil:
            teacher = copy.deepcopy(network).eval().requires_grad_(False)
    trunk = _compiled(network.trunk)
    seen_by_teacher = _compiled(teacher.trunk) if teacher is not None else None
    ranking = RankingLoss.paper(trial.framework) if trial.paper else RankingLoss(framework=trial.framework)
    optimiser = torch.optim.SGD(
        network.parameters(), trial.learning_rate, momentum=0.9, nesterov=True, weight_decay=trial.weight_decay
    )

    def loss_of(views: Tensor, known: Tensor, image: Tensor, quarters: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            embeddings = trunk(views)
            answers = network.classifier(embeddings).float()
            loss = nn.functional.cross_entropy(answers, known)
            if trial.turned:
                loss = loss + nn.functional.cross_entropy(network.direction(embeddings).float(), quarters)
            if teacher is not None and seen_by_teacher is not None:
                with torch.no_grad():
                    taught = (teacher.classifier(seen_by_teacher(views)).float() / WARMTH).softmax(-1)
                loss = loss + trial.distil * WARMTH**2 * nn.functional.cross_entropy(answers / WARMTH, taught)
            if trial.rank:
                few = int((quarters == 0).sum()) if trial.rank == "classes" else len(views)
                relevant = {"classes": known, "turned": 4 * known + quarters, "images": image}[trial.rank]
                loss = loss + trial.weight * ranking(network.projection(embeddings[:few]).float(), relevant[:few])
        return loss

    for _, size in trial.sizes:  # compiled before the time begins
        loss_of(*batches.draw(0, size)).backward()  # type: ignore[no-untyped-call]
        loss_of(*batches.draw(0, size)).item()
    begin = time.perf_counter()
    for step in range(trial.updates):
        done = step / trial.updates
        size = next(size for until, size in trial.sizes if done < until)
        optimiser.param_groups[0]["lr"] = rate_at(trial, step)
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(*batches.draw(step, size))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % 500 == 0:
            say(f"{100 * done:.0f} %, loss {loss.item():.3f}")
    images = trial.updates * trial.classes * trial.per_class
    how = {"updates": trial.updates, "epochs": images / batches.count, "views": images * trial.views, "loss": loss.item()}
    return network, {**how, "seconds": time.perf_counter() - begin}


@torch.no_grad()
def measured(network: Network, split: str, episodes: int) -> dict[str, dict[str, dict[str, float]]]:
    """By every rule; retrieval is the same by all."""
    images = data.load(DATA, split)
    vectors = embed_all(Mirrored(network.trunk).eval(), images)
    labels = torch.from_numpy(images.labels)
    found_again = fewshot.Retrieval(min(20, len(images.classes)))
    tasks: list[fewshot.Task] = [fewshot.Classification(5, 1), fewshot.Classification(5, 5), found_again]
    found = {}
    for rule in RULES:
        asked = tasks if rule == RULES[0] else tasks[:2]
        results = fewshot.evaluate_embeddings(vectors, labels, asked, episodes, 0, rule)
        found[rule] = fewshot.summary(results)
        say(split, rule, *map(str, results))
    return found


def weights_of(name: str, runs: Path, seed: int = 0) -> Path:
    """Where a trial's network is kept, with the heads that it learned with, in half precision."""
    return runs / f"resnet12-{name}-{seed}.safetensors"


def record_of(name: str, results: Path, seed: int = 0) -> Path:
    return results / FOLDER / f"{name}-{seed}.json"


def perform(name: str, runs: Path, results: Path, seed: int = 0) -> None:
    """Train, keep the weights, and measure."""
    trial = TRIALS[name]
    start = weights_of(trial.after, runs, seed) if trial.after else None
    if start is not None and not start.is_file():
        raise FileNotFoundError(f"{name} goes on from {trial.after}, and there is no {start}")
    network, how = learn(trial, seed, start)
    runs.mkdir(parents=True, exist_ok=True)
    write_tensors(weights_of(name, runs, seed), halved(network.state_dict()), {})
    record = {**circumstances(seed), "trial": asdict(trial), "start": trial.after or None, **how}
    for split in ("val", "test"):
        record[split] = measured(network, split, EPISODES)
    write_record(record_of(name, results, seed), record)
