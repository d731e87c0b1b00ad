"""A network that has learned from ImageNet, taught one's own photographs by every loss: which ranks new classes best?

`python -m benchmarks.fine_tuning cub FOLDER --jobs 9` (or grocery; a folder with train, val and test, a folder a class in
each) on a GPU. Every method has the same number of trials: three learning rates by two settings of its own, taught the
classes of train and judged by MAP@R on those of val. The best of them is then taught train and val together with three
seeds, and measured on the classes of test. One json a run below results/fine_tuning; `make tables` reads these.

`--frozen` keeps the network as it is and learns a linear head that starts as the identity, from four views of every image
that the network sees once: on two CPU cores that takes minutes, not hours.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot import Embedder
from rankshot.data import ImageSet, load, prepared
from rankshot.fewshot import Classification, evaluate_embeddings, summary
from rankshot.fewshot.evaluation import embed_all
from rankshot.methods import Context, LossMethod, Method
from rankshot.methods.method import make_method
from rankshot.methods.prototypical import PrototypicalNetwork
from rankshot.models.headed import head_for
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.inputs import embedded_once
from rankshot.vectors import unit_vectors

from .heads import learn
from .measure import circumstances
from .places import ROOT

FOLDER = ROOT / "results" / "fine_tuning"
NETWORK = "efficientnet-lite0"
RATES = (0.0001, 0.0003, 0.001)
SEEDS = (0, 1, 2)
CHOSEN_BY = "map_at_r"
RULES = ("prototype", "logistic")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS_AT_ONCE = 512
DIMENSIONS = 1280  # of the network's embeddings
AUGMENT = ("flip", "crop", "jitter")
BATCH = {"batch_classes": 16, "batch_size": 128}


@dataclass(frozen=True)
class Task:
    """How long a network learns, from pictures of which size; `episodes` of few-shot classification, if any."""

    size: int
    updates: int
    episodes: int = 0
    way: int = 20


TASKS = {"cub": Task(128, 500), "grocery": Task(160, 300, episodes=1000)}


@dataclass(frozen=True)
class Contender:
    """A method with settings: one of rankshot's by its name, or a loss of pytorch-metric-learning.

    own_rate   of what a loss learns itself (proxies), as a multiple of the network's
    """

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    from_pml: str | None = None
    miner: float | None = None
    own_rate: float = 1.0


WIDE = {"epsilon": 0.003, "smoothing": 0.02}


def _paper(method: str, more: dict[str, float]) -> tuple[Contender, Contender]:
    """As in the paper: no smoothing, no second scale."""
    exact = {"smoothing": 0.0, "coarse_weight": 0.0, **more}
    return Contender(method, {"alpha": 10.0, **exact}), Contender(method, {"alpha": 1.0, **exact})


METHODS: dict[str, tuple[Contender, Contender]] = {
    "map-dlm": (Contender("map-dlm", WIDE), Contender("map-dlm", {**WIDE, "coarse_weight": 0.3, "coarse_alpha": 1.0})),
    "map-ssvm": (Contender("map-ssvm"), Contender("map-ssvm", {"smoothing": 0.02, "alpha": 1.0})),
    "map-dlm-paper": _paper("map-dlm", {"epsilon": 1.0}),
    "map-ssvm-paper": _paper("map-ssvm", {}),
    "smooth-ap": (Contender("smooth-ap", {"temperature": 0.01}), Contender("smooth-ap", {"temperature": 0.02})),
    "fast-ap": (Contender("fast-ap", {"bins": 10}), Contender("fast-ap", {"bins": 20})),
    "supcon": (Contender("supcon", {"temperature": 0.1}), Contender("supcon", {"temperature": 0.05})),
    "triplet": (Contender("triplet", {"margin": 0.2}), Contender("triplet", {"margin": 0.1})),
    "prototypical": (Contender("prototypical", {"scale": 0.1}), Contender("prototypical", {"scale": 0.01})),
    "proxy-anchor": (
        Contender("own", {"margin": 0.1, "alpha": 32}, "ProxyAnchorLoss", own_rate=100),
        Contender("own", {"margin": 0.1, "alpha": 32}, "ProxyAnchorLoss", own_rate=10),
    ),
    "multi-similarity": (
        Contender("own", {"alpha": 2, "beta": 50, "base": 0.5}, "MultiSimilarityLoss"),
        Contender("own", {"alpha": 2, "beta": 50, "base": 0.5}, "MultiSimilarityLoss", miner=0.1),
    ),
}


class FromPML(nn.Module):
    """A loss of pytorch-metric-learning, with its miner."""

    def __init__(self, contender: Contender, classes: int, width: int) -> None:
        super().__init__()
        from pytorch_metric_learning import losses, miners

        kind = getattr(losses, str(contender.from_pml))
        proxies = {"num_classes": classes, "embedding_size": width} if "Proxy" in str(contender.from_pml) else {}
        self.loss = kind(**contender.settings, **proxies)
        self.miner = miners.MultiSimilarityMiner(contender.miner) if contender.miner is not None else None

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = self.miner(embeddings, labels) if self.miner is not None else None
        found: Tensor = self.loss(embeddings, labels, pairs)
        return found


@dataclass(frozen=True)
class Job:
    """One training: a trial, or one of those that are measured on test."""

    task: str
    data: str
    method: str
    setting: int
    rate: float
    seed: int
    is_trial: bool
    is_frozen: bool = False

    @property
    def path(self) -> Path:
        kind = "trials" if self.is_trial else "test"
        return Path(
            self.task,
            "head" if self.is_frozen else "network",
            kind,
            f"{self.method}-{self.setting}-rate-{self.rate}-seed-{self.seed}.json",
        )


def taught(job: Job, folder: Path) -> dict[str, float]:
    """Train as the job says, into a folder; how long it took."""
    task, contender = TASKS[job.task], METHODS[job.method][job.setting]
    images = load(job.data, "train" if job.is_trial else "trainval")
    given: dict[str, Any] = {"method": contender.method, **contender.settings}
    own: dict[str, Any] = {}
    if contender.from_pml:
        own["loss"] = FromPML(contender, len(images.classes), DIMENSIONS)
        given = {"cuda_graph": False}
        if any(True for _ in own["loss"].parameters()):
            given |= {"trunk_rate": 1 / contender.own_rate}
    config = TrainConfig.of(
        **given,
        network=NETWORK, init=NETWORK, augment=AUGMENT, schedule="cosine", seed=job.seed,
        learning_rate=job.rate * (contender.own_rate if "trunk_rate" in given else 1),
        **BATCH,
        validate_every=0, updates=task.updates, log_every=task.updates, checkpoint_every=task.updates,
    )  # fmt: skip
    start = time.perf_counter()
    train(config, folder, train_set=images, progress=Callback(), **own)
    return {"seconds": time.perf_counter() - start}


@torch.no_grad()
def ranked(vectors: Tensor, labels: Tensor) -> dict[str, float]:
    """(n, D) unit vectors, each ranking all others: Recall@1, MAP@R and mAP, in %."""
    labels = labels.to(vectors.device)
    sizes = labels.bincount()
    nearest, at_r, whole = [], [], []
    for rows in torch.arange(len(labels), device=vectors.device).split(ROWS_AT_ONCE):  # type: ignore[no-untyped-call]
        similar = vectors[rows] @ vectors.T
        similar[torch.arange(len(rows)), rows] = -torch.inf
        order = similar.argsort(-1, descending=True)[:, :-1]
        relevant = (labels[order] == labels[rows, None]).double()
        number = (sizes[labels[rows]] - 1).double()
        precision = relevant.cumsum(-1) / torch.arange(1, order.shape[1] + 1, device=vectors.device)
        within = torch.arange(order.shape[1], device=vectors.device) < number[:, None]
        nearest.append(relevant[:, 0])
        at_r.append((precision * relevant * within).sum(-1) / number)
        whole.append((precision * relevant).sum(-1) / number)
    parts = {"recall_at_1": nearest, "map_at_r": at_r, "map": whole}
    return {name: 100 * torch.cat(values).mean().item() for name, values in parts.items()}


@cache
def seen(data: str, split: str) -> tuple[ImageSet, Tensor]:
    """The images of a split and what the network as it comes makes of them: (n, V, D), several views of each."""
    images, network = load(data, split), Embedder(NETWORK).network.to(DEVICE).eval()
    augment = AUGMENT if "train" in split else ()
    labels = torch.from_numpy(images.labels).to(DEVICE)
    return images, embedded_once(network, images.pixels(), labels, augment, 0, torch.float32, print).views


def taught_head(job: Job) -> tuple[nn.Module, dict[str, float]]:
    """Only a head learns, from embeddings."""
    task, contender = TASKS[job.task], METHODS[job.method][job.setting]
    images, views = seen(job.data, "train" if job.is_trial else "trainval")
    start = time.perf_counter()
    torch.manual_seed(job.seed)
    context = Context(DIMENSIONS, len(images.classes), **BATCH)
    method: Method
    if contender.from_pml:
        method = LossMethod(context, FromPML(contender, len(images.classes), DIMENSIONS))
    else:
        method = make_method(TrainConfig.of(method=contender.method, **contender.settings).method, context)
    head = head_for(DIMENSIONS, "linear")
    model = PrototypicalNetwork(head, contender.settings["scale"]) if contender.method == "prototypical" else head
    learn(
        model.to(DEVICE),
        method.to(DEVICE),
        views,
        torch.from_numpy(images.labels).to(DEVICE),
        updates=task.updates,
        rate=job.rate,
        own_rate=contender.own_rate,
        seed=job.seed,
    )
    return head, {"seconds": time.perf_counter() - start}


@torch.no_grad()
def measured(vectors: Tensor, labels: Tensor, task: Task) -> dict[str, Any]:
    """Of unit vectors: how they rank each other, and few-shot classification."""
    results: dict[str, Any] = ranked(vectors, labels)
    if task.episodes:
        way = min(task.way, int(labels.max()) + 1)
        for rule in RULES:
            tasks = [Classification(way, shot) for shot in (1, 5)]
            results[rule] = summary(evaluate_embeddings(vectors, labels, tasks, task.episodes, 1, rule))
    return results


def results_of(job: Job) -> tuple[dict[str, float], dict[str, Any]]:
    """How it learned, and what came out."""
    split, task = "val" if job.is_trial else "test", TASKS[job.task]
    if job.is_frozen:
        images, views = seen(job.data, split)
        head, how = taught_head(job)
        with torch.no_grad():
            vectors = unit_vectors(head(views[:, 0]))
    else:
        images = load(job.data, split)
        with tempfile.TemporaryDirectory() as folder:
            how = taught(job, Path(folder, "run"))
            vectors = embed_all(Embedder(str(Path(folder, "run"))).network.to(DEVICE), images)
    return how, measured(vectors, torch.from_numpy(images.labels), task)


def run(job: Job, to: Path) -> str:
    if (to / job.path).exists():
        return f"{job.path} is there"
    try:
        how, results = results_of(job)
    except Exception:
        return f"{job.path} FAILED\n{traceback.format_exc()}"
    contender = asdict(METHODS[job.method][job.setting])
    record = {**circumstances(job.seed), "job": asdict(job), "contender": contender, **how, "results": results}
    path = to / job.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    return f"{job.path} {how['seconds']:.0f} s {results['recall_at_1']:.2f} {results['map_at_r']:.2f}"


def records(to: Path, task: str, part: str, kind: str, method: str) -> list[dict[str, Any]]:
    """Of one method; `part` of the network is what learned, `kind` is trials or test."""
    found = [json.loads(path.read_text()) for path in sorted((to / task / part / kind).glob("*.json"))]
    return [record for record in found if record["job"]["method"] == method]


def best_trial(to: Path, task: str, part: str, method: str) -> dict[str, Any]:
    return max(records(to, task, part, "trials", method), key=lambda record: float(record["results"][CHOSEN_BY]))


def untaught(task: str, data: str, to: Path) -> None:
    """The network as it comes."""
    path = to / task / "untaught.json"
    if not path.exists():
        images = load(data, "test")
        vectors = embed_all(Embedder(NETWORK).network.to(DEVICE), images)
        results = measured(vectors, torch.from_numpy(images.labels), TASKS[task])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**circumstances(0), "results": results}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--frozen", action="store_true", help="learn a head alone")
    parser.add_argument("--to", type=Path, default=FOLDER)
    options = parser.parse_args()
    part = "head" if options.frozen else "network"
    data = prepared(str(options.folder), size=TASKS[options.task].size, fit="crop").name
    methods = options.method or list(METHODS)
    untaught(options.task, data, options.to)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        trials = [Job(options.task, data, method, setting, rate, 0, is_trial=True, is_frozen=options.frozen)
                  for setting, rate, method in product((0, 1), RATES, methods)]  # fmt: skip
        for line in pool.imap_unordered(_run, [(job, options.to) for job in trials]):
            print(line, flush=True)
        best = [best_trial(options.to, options.task, part, method)["job"] for method in methods]
        jobs = [Job(**{**chosen, "data": data, "seed": seed, "is_trial": False}) for seed, chosen in product(SEEDS, best)]
        for line in pool.imap_unordered(_run, [(job, options.to) for job in jobs]):
            print(line, flush=True)


def _run(given: tuple[Job, Path]) -> str:
    return run(*given)


if __name__ == "__main__":
    main()
