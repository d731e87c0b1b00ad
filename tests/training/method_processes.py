"""One of several processes: `python method_processes.py RANK WORLD FILE TO`. Trains by every method, in a few updates."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import distributed, nn

from rankshot.data import ImageSet
from rankshot.fewshot import Classification, Retrieval, evaluate
from rankshot.losses import GatheredLoss, NCALoss, RankingLoss
from rankshot.methods import METHODS, Context, Episodic, make_method
from rankshot.methods.method import method_class
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.run_folder import STATE

torch.set_num_threads(1)


class Smooth(nn.Module):
    """A loss of one's own, that is no `BatchLoss`."""

    def forward(self, embeddings, labels):
        same = (labels[:, None] == labels).float()
        return ((embeddings @ embeddings.T).sigmoid() - same).square().mean()


CASES = {name: {"method": name} for name in METHODS if method_class(name).in_parts}
CASES["memory"]["tasks"] = 1
CASES |= {
    "remembering": {"method": "nca", "memory": 40},
    "near classes": {"method": "nca", "batch_similar": 0.5},
    "in micro-batches": {"method": "nca", "micro_batch": 3, "frozen": ("0.1", "1.1", "2.1", "3.1")},
    "averaged and clipped": {"method": "supcon", "average": 0.9, "clip": 0.1, "augment": ("crop", "jitter")},
    "a loss of one's own": {"loss": Smooth(), "learning_rate": 0.3},
    "a gathered loss": {"loss": GatheredLoss(NCALoss())},
    "a sum": {"loss": RankingLoss(reduction="sum"), "learning_rate": 0.0004},
}


def images(seed, classes):
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (classes * 8, 1, 16, 16), dtype=np.uint8)
    return ImageSet(pixels, np.arange(classes * 8) // 8, tuple(f"{seed}-{number}" for number in range(classes)))


def trained(settings, folder):
    """The weights after three updates by plain gradient descent, which makes nothing large of what is small."""
    settings = dict(settings)
    is_episodic = issubclass(method_class(settings.get("method", "nca")), Episodic)
    objects = {"loss": settings.pop("loss")} if "loss" in settings else {}
    config = TrainConfig.of(
        batch_classes=4,
        batch_size=24 if is_episodic else 25,
        filters=8,
        updates=3,
        validate_every=3,
        device="cpu",
        **{"validation_episodes": 4, "learning_rate": 0.01, "optimiser": "sgd", "schedule": "constant", **settings},
    )
    train(config, folder, train_set=images(0, 6), val_set=images(1, 5), progress=Callback(), **objects)


def evaluated(together):
    """By name: the values of all episodes, of every way to evaluate. Two episodes are fewer than processes, of three."""
    torch.manual_seed(0)
    tasks, found = [Classification(3, 1, 4), Retrieval(3, 4)], {}
    random = np.random.default_rng(0)  # images that are told apart by more than rounding
    kinds, noise = random.integers(0, 200, (5, 1, 16, 16)), random.integers(0, 56, (40, 1, 16, 16))
    held_out = ImageSet((kinds.repeat(8, 0) + noise).astype(np.uint8), np.arange(40) // 8, tuple("abcde"))
    network, other = (build({"name": "conv4", "in_channels": 1, "filters": 8}, Preprocess(1, 16, 16)) for _ in range(2))
    answerer = make_method(METHODS.choose("maml"), Context(other.embedding_dim, 6, 3, 24)).network(other)
    for name, model, some, options in (
        ("running", network, tasks, {}),
        ("batch", network, tasks, {"batch_norm": "batch"}),
        ("by a rule", network, tasks[:1], {"rule": "logistic"}),
        ("few", network, tasks, {"episodes": 2}),
        ("an answerer", answerer, tasks[:1], {}),
    ):
        results = evaluate(model.eval(), held_out, some, **{"episodes": 7, **options}, together=together)
        found[name] = [result.values.tolist() for result in results]
    return found


def main(rank, world, meeting, to):
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    for number, settings in enumerate(CASES.values()):
        trained(settings, Path(to) / str(number))
    (Path(to) / f"evaluated-{rank}.json").write_text(json.dumps(evaluated(together=True)))
    os._exit(0)  # see `processes.joined`


def alone(settings):
    with tempfile.TemporaryDirectory() as folder:
        trained(settings, Path(folder) / "run")
        return read_tensors(Path(folder) / "run" / STATE)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
