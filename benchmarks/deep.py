"""What makes ranking help a deep network: `python -m benchmarks.deep NAME --seconds 600` on a GPU, mini-ImageNet prepared.

ResNet-12 learns mini-ImageNet's 64 training classes for so long: always by classifying them; in the trials with rotations
also by telling which way an image was turned; and beside that by mAP-DLM on a projection that is thrown away (or, for
comparison, on the embedding that is kept). Judged on the validation classes. Into results/trials/deep/NAME.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from rankshot import data, fewshot
from rankshot.data.augmentation import jitter
from rankshot.losses import RankingLoss
from rankshot.models.network import NETWORKS, build
from rankshot.randomness import generator_for

from .measure import circumstances
from .places import ROOT

FOLDER = ROOT / "results" / "trials" / "deep"
DATA, IMAGES_AT_ONCE = "mini-imagenet", 512
RULES = ("ap", "prototype", "logistic")


@dataclass(frozen=True)
class Trial:
    """What a trial learns by.

    rotations   every image comes in four directions, and a head tells which
    rank        what is ranked: nothing; the images as they are ("upright"); or all, turned ones as classes of their own
    projection  dimensions of what is ranked; 0: the embedding itself
    """

    rotations: bool = True
    rank: str = "nothing"
    weight: float = 1.0
    projection: int = 128
    framework: str = "dlm"
    paper: bool = False
    classes: int = 32
    per_class: int = 4
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    smallest_crop: float = 0.35  # of the area of an image


TRIALS = {
    "classes": Trial(rotations=False),
    "rotations": Trial(),
    "rotations-rank": Trial(rank="upright"),
    "rotations-rank-turned": Trial(rank="turned"),
    "rotations-rank-embedding": Trial(rank="upright", projection=0, weight=0.3),
    "rotations-rank-ssvm": Trial(rank="upright", framework="ssvm"),
    "rotations-rank-paper": Trial(rank="upright", paper=True),
    "rank": Trial(rotations=False, rank="upright"),
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


class BothViews(nn.Module):
    """An image and its mirror image, as one embedding."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk

    def forward(self, images: Tensor) -> Tensor:
        both: Tensor = self.trunk(images) + self.trunk(images.flip(-1))
        return both


def cropped(images: Tensor, smallest: float, random: torch.Generator) -> Tensor:
    """Random parts of them, resized to the whole and mirrored by chance; colours by chance too."""
    area, shape, x, y, side, *_ = torch.rand(6, len(images), device=images.device, generator=random)
    area, shape = smallest + (1 - smallest) * area, (shape - 0.5) * 2 * math.log(4 / 3)
    widths, heights = ((area.sqrt() * (sign * shape / 2).exp()).clamp(max=1) for sign in (1, -1))
    theta = torch.zeros(len(images), 2, 3, device=images.device)
    theta[:, 0, 0], theta[:, 1, 1] = widths * torch.where(side < 0.5, -1.0, 1.0), heights
    theta[:, 0, 2], theta[:, 1, 2] = (1 - widths) * (2 * x - 1), (1 - heights) * (2 * y - 1)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    parts = nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    return jitter(parts, torch.rand(len(images), 7, device=images.device, generator=random))


def learn(trial: Trial, seconds: float, seed: int) -> tuple[Network, dict[str, float]]:
    images = data.load(DATA)
    pixels, labels = images.pixels().cuda(), torch.from_numpy(images.labels)
    members = labels.argsort(stable=True).view(len(images.classes), -1)  # every class has as many
    torch.manual_seed(seed)
    network = Network(len(images.classes), trial.projection).cuda().train()
    trunk = torch.compile(network.trunk)
    ranking = RankingLoss.paper(trial.framework) if trial.paper else RankingLoss(framework=trial.framework)
    optimiser = torch.optim.SGD(
        network.parameters(), trial.learning_rate, momentum=0.9, nesterov=True, weight_decay=trial.weight_decay
    )
    random, step, start = generator_for(seed, "deep", device="cuda"), 0, 0.0
    turns = 4 if trial.rotations else 1
    direction = torch.arange(turns, device="cuda").repeat_interleave(trial.classes * trial.per_class)
    while True:
        if step == 10:  # compiled by then
            torch.cuda.synchronize()
            start = time.perf_counter()
        done = (time.perf_counter() - start) / seconds if step >= 10 else 0.0
        if done >= 1:
            break
        rate = trial.learning_rate * min(1.0, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * done))
        optimiser.param_groups[0]["lr"] = rate
        drawn = generator_for(seed, step)
        chosen = torch.randperm(len(members), generator=drawn)[: trial.classes]
        places = torch.stack([torch.randperm(members.shape[1], generator=drawn)[: trial.per_class] for _ in chosen])
        indices, known = members[chosen].gather(1, places).flatten(), chosen.repeat_interleave(trial.per_class).cuda()
        views = cropped(pixels[indices.cuda()].float() / 255, trial.smallest_crop, random)
        views = torch.cat([views.rot90(turn, (2, 3)) for turn in range(turns)])
        with torch.autocast("cuda", torch.bfloat16):
            embeddings = trunk(views)
            loss = nn.functional.cross_entropy(network.classifier(embeddings).float(), known.repeat(turns))
            if trial.rotations:
                loss = loss + nn.functional.cross_entropy(network.direction(embeddings).float(), direction)
            if trial.rank == "upright":
                loss = loss + trial.weight * ranking(network.projection(embeddings[: len(known)]).float(), known)
            elif trial.rank == "turned":
                classes = 4 * known.repeat(turns) + direction
                loss = loss + trial.weight * ranking(network.projection(embeddings).float(), classes)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        step += 1
        if step % 500 == 0:
            print(step, f"{100 * done:.0f} %", f"loss {loss.item():.3f}", flush=True)
    seen = step * trial.classes * trial.per_class
    return network, {"updates": step, "epochs": seen / len(labels), "loss": loss.item()}


@torch.no_grad()
def measured(network: Network, split: str, episodes: int) -> dict[str, dict[str, dict[str, float]]]:
    """By every rule; retrieval is the same by all."""
    images = data.load(DATA, split)
    model = BothViews(network.trunk).eval()
    found_again = fewshot.Retrieval(min(20, len(images.classes)))
    tasks: list[fewshot.Task] = [fewshot.Classification(5, 1), fewshot.Classification(5, 5), found_again]
    found = {}
    for rule in RULES:
        results = fewshot.evaluate(model, images, tasks if rule == "ap" else tasks[:2], episodes, 0, rule=rule)
        found[rule] = fewshot.summary(results)
        print(split, rule, *results, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=TRIALS)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--weights", type=Path, help="a file for the trunk, in half precision")
    options = parser.parse_args()
    trial = TRIALS[options.name]
    network, how = learn(trial, options.seconds, options.seed)
    if options.weights is not None:
        from rankshot.tensors import write_tensors

        halves = {name: x.half() if x.is_floating_point() else x for name, x in network.trunk.state_dict().items()}
        write_tensors(options.weights, halves, {})
    results = {**circumstances(options.seed), "trial": asdict(trial), "seconds": options.seconds, **how}
    for split in ("val", "test"):
        results[split] = measured(network, split, options.episodes)
        options.to.mkdir(parents=True, exist_ok=True)
        (options.to / f"{options.name}-{options.seed}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
