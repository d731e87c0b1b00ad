"""A network that has learned from ImageNet, taught one's own photographs by every loss: which ranks new classes best?

Every method has the same number of trials: three learning rates by two settings of its own, taught the classes of train
and judged on those of val, by the figure that the task is about. The best of them is then taught train and val together
with three seeds, and measured on the classes of test. Either the whole network learns, with the statistics of batch norm as
they come, or a linear head, from four views of every image that the network sees once. That takes minutes on two CPU cores,
not hours. It starts as the identity, or whitened.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rankshot.data import ImageSet, load, prepared
from rankshot.fewshot import Classification, evaluate_embeddings, summary
from rankshot.fewshot.evaluation import embed_all
from rankshot.gallery import Embedder
from rankshot.hardware import circumstances
from rankshot.methods import Context, LossMethod, Method
from rankshot.methods.method import make_method
from rankshot.methods.prototypical import PrototypicalNetwork
from rankshot.models.headed import Whitened, head_for
from rankshot.reproduce.records import write_record
from rankshot.schema import read_json
from rankshot.terminal import counting, say
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.inputs import embedded_once
from rankshot.training.optimiser import STATISTICS
from rankshot.vectors import unit_vectors

from .contenders import METHODS, FromPML, check_installed
from .head_alone import learn

FOLDER = Path("fine_tuning")  # of the json files, below results/
NETWORK = "efficientnet-lite0"
RATES = {"network": (0.00003, 0.0001, 0.0003), "head": (0.0001, 0.0003, 0.001), "whitened": (0.0001, 0.0003, 0.001)}
SEEDS = (0, 1, 2)
RULES = ("prototype", "logistic")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS_AT_ONCE = 512
DIMENSIONS = 1280  # of the network's embeddings
AUGMENT = ("flip", "crop", "jitter")
BATCH = {"batch_classes": 16, "batch_size": 128}


@dataclass(frozen=True)
class Task:
    """How many updates a network learns for, and how many a head, from pictures of which size; `episodes` of few-shot
    classification, if any.

    Trials are chosen by 5-shot classification with the class mean where there are episodes, and by MAP@R where not.
    """

    size: int
    updates: int
    updates_of_a_head: int
    episodes: int = 0
    way: int = 20

    def judged(self, results: Mapping[str, Any]) -> float:
        if not self.episodes:
            return float(results["map_at_r"])
        share = next(float(found["mean"]) for few, found in results["prototype"].items() if few.startswith("5-shot"))
        if not 0 <= share <= 1:
            raise ValueError(f"an accuracy is a share from 0 to 1, got {share}: the record is of another version")
        return share


TASKS = {"cub": Task(128, 250, 500), "grocery": Task(160, 150, 300, episodes=1000)}
HEADS: dict[str, Literal["linear", "whitened"]] = {"head": "linear", "whitened": "whitened"}
PARTS = ("network", *HEADS)  # what learns


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
    part: str = "network"  # what learns

    @property
    def path(self) -> Path:
        kind = "trials" if self.is_trial else "test"
        return Path(
            self.task,
            self.part,
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
        network=NETWORK, init=NETWORK, frozen=(STATISTICS,), augment=AUGMENT, schedule="cosine", seed=job.seed,
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
    head, labels = head_for(DIMENSIONS, HEADS[job.part]), torch.from_numpy(images.labels).to(DEVICE)
    if isinstance(head, Whitened):
        head.to(DEVICE).fit(views, labels)
    model = PrototypicalNetwork(head, contender.settings["scale"]) if contender.method == "prototypical" else head
    learn(
        model.to(DEVICE),
        method.to(DEVICE),
        views,
        labels,
        updates=task.updates_of_a_head,
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
    if job.part in HEADS:
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


def run(job: Job, results: Path) -> str | None:
    """Train, measure and write the json, unless it is there; a line about it."""
    if result_of(job, results) is not None:
        return None
    try:
        how, found = results_of(job)
    except (ValueError, OSError, RuntimeError) as error:  # one that breaks down leaves the others alone
        return f"{job.path}: {error}"
    content = {**circumstances(job.seed), "job": asdict(job), "contender": contender_of(job), **how, "results": found}
    write_record(results / FOLDER / job.path, content)
    return f"{job.path}: {how['seconds']:.0f} s, Recall@1 {found['recall_at_1']:.2f}, MAP@R {found['map_at_r']:.2f}"


def result_of(job: Job, results: Path) -> dict[str, Any] | None:
    """What is recorded of a job, if it is. A record of other settings is an error: nothing is overwritten.

    The name of a file tells which of a method's settings it is of, and not what that one was then.
    """
    path = results / FOLDER / job.path
    if not path.exists():
        return None
    record: dict[str, Any] = read_json(path)
    recorded, expected = record.get("contender"), contender_of(job)
    if recorded != expected:
        flat = [{**each, **each.get("settings", {})} if isinstance(each, dict) else {} for each in (recorded, expected)]
        names = {name: None for each in flat for name in each if name != "settings"}
        changed = [name for name in names if flat[0].get(name) != flat[1].get(name)]
        raise ValueError(f"{path} was made with other settings ({', '.join(changed)}): to run it anew, move away this file")
    return record


def contender_of(job: Job) -> dict[str, Any]:
    """As json has it."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(METHODS[job.method][job.setting])))
    return content


def records(results: Path, task: str, part: str, kind: str, method: str) -> list[dict[str, Any]]:
    """Of one method; `part` of the network is what learned, `kind` is trials or test."""
    found = [read_json(path) for path in sorted((results / FOLDER / task / part / kind).glob("*.json"))]
    return [record for record in found if record["job"]["method"] == method]


def trials_of(task: str, data: str, part: str) -> list[Job]:
    return [
        Job(task, data, method, setting, rate, 0, is_trial=True, part=part)
        for setting, rate, method in product((0, 1), RATES[part], METHODS)
    ]


def tests_of(task: str, data: str, part: str, results: Path) -> list[Job]:
    """Of every method whose trials are done: the best of them, with every seed."""
    per_method = {method: records(results, task, part, "trials", method) for method in METHODS}
    best = [
        max(found, key=lambda record: TASKS[task].judged(record["results"]))["job"]
        for found in per_method.values()
        if len(found) == 2 * len(RATES[part])
    ]
    return [
        Job(task, data, job["method"], job["setting"], job["rate"], seed, is_trial=False, part=part)
        for seed, job in product(SEEDS, best)
    ]


def untaught(task: str, data: str, results: Path) -> None:
    """The network as it comes."""
    path = results / FOLDER / task / "untaught.json"
    if not path.exists():
        images = load(data, "test")
        vectors = embed_all(Embedder(NETWORK).network.to(DEVICE), images)
        found = measured(vectors, torch.from_numpy(images.labels), TASKS[task])
        write_record(path, {**circumstances(0), "results": found})


def perform(task: str, folder: Path, part: str, results: Path, *, jobs: int = 1) -> None:
    """All trials of a task and then all tests that have no json yet.

    part  what learns: the "network", or a "head" alone, "whitened" or not
    jobs  how many at a time, each in a process of its own
    """
    check_installed()
    with counting(task) as progress:
        data = prepared(str(folder), size=TASKS[task].size, fit="crop", progress=progress).name
    untaught(task, data, results)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for find in (partial(trials_of, task, data, part), partial(tests_of, task, data, part, results)):
            todo = find()  # which tests there are depends on the trials
            for job in todo:
                result_of(job, results)  # complains about other settings before anything is trained
            for line in pool.imap_unordered(partial(run, results=results), todo):
                if line:
                    say(line)
