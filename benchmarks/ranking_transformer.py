"""`RankingTransformer` beside scikit-learn's NCA and metric-learn's LMNN: `python -m benchmarks.ranking_transformer`.

Each learns a map of the same vectors, and rows that it has not seen are ranked by the map: rows of other classes on digits
and on test classes of Omniglot and mini-ImageNet (embeddings of Conv4, and pixels by PCA), other rows of the same classes
on wine and breast cancer. Every fit is a process of its own with one thread, killed after `--seconds`. LMNN runs in an
environment of its own, made below runs/ where `--rival-python` does not name one, since metric-learn needs an older
scikit-learn. `--minutes` ends all of it after so many: what is still learning is told as if killed by a shorter limit.

Into results/benchmarks/ranking_transformer.json, as results come. Vectors and finished fits are kept in
runs/ranking_transformer, so that an interrupted run goes on where it was: remove that folder to measure all anew. Fits of a
`RankingTransformer` that is not the same any more are repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from rankshot import adaptation, data
from rankshot.adaptation.measuring import VALUES_AT_ONCE, Ranked, ranked
from rankshot.fewshot.evaluation import embed_all
from rankshot.gallery import Embedder
from rankshot.hardware import circumstances
from rankshot.ranking import average_precision, relevance_of
from rankshot.reproduce.records import write_record

from .places import FOLDER, ROOT

SEED, SPLITS, COMPONENTS, MANY = 0, 5, 128, 2000
KEPT = ROOT / "runs" / "ranking_transformer"
WORKER = Path(__file__).parent / "map_fit.py"
RIVALS = ("nca", "lmnn")
RIVAL_PACKAGES = ("metric-learn==0.7.0", "scikit-learn<1.6", "numpy<2")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Array = NDArray[Any]


class Split(NamedTuple):
    """Rows to learn from, and rows to be ranked."""

    X_learn: Array
    y_learn: Array
    X_test: Array
    y_test: Array


class DataSet(NamedTuple):
    """Vectors and how they are divided.

    vectors   gives X and y
    prepare   of the rows that are learned from and of all: the latter as every method gets them
    by_class  whether the rows to be ranked are of other classes than those to learn from; else of the same
    splits    how many, by seeds from 0
    """

    vectors: Callable[[], tuple[Array, Array]]
    prepare: Callable[[Array, Array], Array]
    by_class: bool
    splits: int


def standardised(learned: Array, X: Array) -> Array:
    found: Array = StandardScaler().fit(learned).transform(X)
    return found


def principal(learned: Array, X: Array) -> Array:
    found: Array = PCA(COMPONENTS, random_state=SEED, svd_solver="randomized").fit(learned).transform(X)
    return found


def unchanged(learned: Array, X: Array) -> Array:
    return X


def embeddings(name: str) -> tuple[Array, Array]:
    images = data.load(name, "test")
    return embed_all(Embedder(f"conv4-{name}").network, images).numpy(), np.asarray(images.labels)


def pixels(name: str) -> tuple[Array, Array]:
    images = data.load(name, "test")
    values = np.asarray(images.images).reshape(len(images), -1).astype(np.float32)
    values /= 255
    return values, np.asarray(images.labels)


DATA_SETS = {  # the quick ones first
    "wine": DataSet(lambda: datasets.load_wine(return_X_y=True), standardised, False, SPLITS),
    "breast-cancer": DataSet(lambda: datasets.load_breast_cancer(return_X_y=True), standardised, False, SPLITS),
    "digits": DataSet(lambda: datasets.load_digits(return_X_y=True), standardised, True, SPLITS),
    "omniglot-conv4": DataSet(lambda: embeddings("omniglot"), unchanged, True, 1),
    "omniglot-pixels": DataSet(lambda: pixels("omniglot"), principal, True, 1),
    "mini-imagenet-pixels": DataSet(lambda: pixels("mini-imagenet"), principal, True, 1),
    "mini-imagenet-conv4": DataSet(lambda: embeddings("mini-imagenet"), unchanged, True, 1),
}


def learned_rows(y: Array, by_class: bool, seed: int) -> NDArray[np.bool_]:
    """Which rows are learned from: those of half the classes, or half of those of every class."""
    if by_class:
        classes = np.unique(y)
        np.random.default_rng(seed).shuffle(classes)
        return np.isin(y, classes[: len(classes) // 2])
    chosen = np.zeros(len(y), dtype=bool)
    chosen[train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)[0]] = True
    return chosen


def split_of(found: DataSet, seed: int) -> Split:
    X, y = found.vectors()
    learned = learned_rows(y, found.by_class, seed)
    X = found.prepare(X[learned], X).astype(np.float64)
    return Split(X[learned], y[learned], X[~learned], y[~learned])


def kept_split(name: str, seed: int) -> Path:
    """The file of a split, made where it is not there: embedding takes minutes."""
    path = KEPT / "data" / f"{name}-{seed}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, **split_of(DATA_SETS[name], seed)._asdict())
        part.replace(path)
    return path


def opened(path: Path) -> Split:
    with np.load(path) as file:
        return Split(*(file[field] for field in Split._fields))


def ranked_by_distance(vectors: Tensor, labels: Tensor) -> Ranked:
    """As `ranked`, by Euclidean distance."""
    vectors = vectors - vectors.mean(0)  # distances stay, and are rounded less
    squares, ids = vectors.square().sum(-1), torch.arange(len(vectors))
    precisions, hits = [], []
    for chunk in ids.split(max(1, VALUES_AT_ONCE // len(vectors))):  # type: ignore[no-untyped-call]
        scores = 2 * vectors[chunk] @ vectors.T - squares  # less the query's own square, which ranks nothing
        relevance, valid = relevance_of(labels[chunk], labels, chunk, ids)
        precisions.append(average_precision(scores, relevance, valid))
        nearest = scores.masked_fill(~valid, -torch.inf).argmax(-1)
        hits.append(relevance.gather(-1, nearest[:, None])[:, 0])
    found, right = torch.cat(precisions), torch.cat(hits)
    counts = ~found.isnan()
    return Ranked(float(found[counts].double().mean()), float(right[counts].double().mean()))


def measured(vectors: Array, labels: Array) -> dict[str, dict[str, float]]:
    """mAP and 1-nearest-neighbour accuracy of rows among themselves, by either distance."""
    rows = torch.from_numpy(np.asarray(vectors, dtype=np.float64))
    classes = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    return {
        "cosine": ranked(rows, classes)._asdict(),
        "euclidean": ranked_by_distance(rows, classes)._asdict(),
    }


class Limits(NamedTuple):
    """Of a fit: its seconds, when all must have ended (by `time.monotonic`), and its memory in GiB."""

    seconds: float
    ends: float
    memory: float

    def given(self) -> float:
        return min(self.seconds, self.ends - time.monotonic())


def fit(method: str, split: Path, folder: Path, limits: Limits, python: str = sys.executable) -> dict[str, Any]:
    """One fit in a process of its own, and how well it ranks the rows to be ranked.

    Without figures where it was killed or had too little memory; NCA has those of its last finished iteration all the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.npy"):
        left.unlink()
    # -P: the folder of the script has modules whose names others may import
    command = [python, "-P", str(WORKER), method, str(split), str(folder), str(limits.memory)]
    environment = {**os.environ, **ONE_THREAD}
    # Unbuffered: `readline` must leave the next line to `communicate`
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()  # imports and reading are over
        given, answer = max(0.0, limits.given()), None
        try:
            answer, _ = process.communicate(timeout=given)
        except subprocess.TimeoutExpired:
            process.kill()
        except BaseException:
            process.kill()
            raise
    told: dict[str, Any] = {"seconds_given": given, "reached_limit": answer is None}
    if answer is None:
        told["seconds"] = given
        kept = folder / "map.npy"
        vectors = opened(split).X_test @ np.load(kept).T if kept.exists() else None
    elif process.returncode:
        raise RuntimeError(f"{method} on {split.stem} ended with status {process.returncode}")
    else:
        told |= json.loads(answer)
        vectors = None if told.get("out_of_memory") else np.load(folder / "vectors.npy")
    if vectors is not None:
        told["ranked"] = measured(vectors, opened(split).y_test)
    return told


class Task(NamedTuple):
    """A fit that is to be there: its data set, its split, its method, and the how manieth it is of them."""

    name: str
    seed: int
    method: str
    turn: int = 0

    @property
    def path(self) -> Path:
        return KEPT / "fits" / f"{self.name}-{self.seed}-{self.method}-{self.turn}.json"


def source() -> str:
    """What tells this version of `RankingTransformer` from others, committed or not."""
    digest = hashlib.sha256()
    for path in sorted(Path(adaptation.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def is_done(task: Task, limits: Limits) -> bool:
    """Whether it need not be repeated: it has ended, or could have no more time now than it had; ours if it is the same."""
    if not task.path.exists():
        return False
    found = json.loads(task.path.read_text())
    if task.method == "ours" and found.get("source") != source():
        return False
    return not found["reached_limit"] or found["seconds_given"] >= limits.given() - 1


def do(task: Task, limits: Limits, python: str = sys.executable) -> None:
    split = kept_split(task.name, task.seed)
    if is_done(task, limits):
        return
    if task.method == "as_it_is":
        found = opened(split)
        told = {"reached_limit": False, "ranked": measured(found.X_test, found.y_test)}
    elif limits.given() <= 0:
        return
    else:
        told = {"source": source()} if task.method == "ours" else {}
        told |= fit(task.method, split, task.path.with_suffix(""), limits, python)
    write_record(task.path, told)
    print(*task, json.dumps(told), flush=True)


def tasks_in_turn() -> Iterator[Task]:
    """All but LMNN's. Ours before and after NCA: a machine is not always as fast."""
    for name, found in DATA_SETS.items():
        for seed in range(found.splits):
            yield Task(name, seed, "as_it_is")
            yield Task(name, seed, "ours", 0)
            yield Task(name, seed, "nca")
            yield Task(name, seed, "ours", 1)


def tasks_of_lmnn() -> Iterator[Task]:
    return (Task(name, seed, "lmnn") for name, found in DATA_SETS.items() for seed in range(found.splits))


def of_method(name: str, method: str) -> dict[str, Any] | None:
    """Means over the splits that are there; by the distance that ranks better, but ours by cosine."""
    tasks = [Task(name, seed, method, turn) for seed in range(DATA_SETS[name].splits) for turn in (0, 1)]
    fits = [json.loads(task.path.read_text()) for task in tasks if task.path.exists()]
    if not fits:
        return None
    found: dict[str, Any] = {"fits": len(fits), "reached_limit": any(each["reached_limit"] for each in fits)}
    if any(each.get("out_of_memory") for each in fits):
        found["out_of_memory"] = True
    for key in ("seconds", "processor_seconds", "seconds_given", "iterations"):
        if all(key in each for each in fits):
            found[key] = statistics.mean(each[key] for each in fits)
    found["versions"] = sorted({version for each in fits for version in each.get("versions", [])})
    if method == "ours":
        found["sources"] = sorted({each.get("source", "unknown") for each in fits})
    if all("ranked" in each for each in fits):
        by_distance = {
            distance: {key: statistics.mean(each["ranked"][distance][key] for each in fits) for key in ("map", "nearest")}
            for distance in ("cosine", "euclidean")
        }
        best = "cosine" if method == "ours" else max(by_distance, key=lambda each: by_distance[each]["map"])
        found |= {**by_distance[best], "distance": best, "by_distance": by_distance}
    return found


def of_data_set(name: str) -> dict[str, Any]:
    split, found = opened(kept_split(name, 0)), DATA_SETS[name]
    every = {method: of_method(name, method) for method in ("as_it_is", "ours", *RIVALS)}
    return {
        "rows": len(split.X_learn),
        "rows_ranked": len(split.X_test),
        "dimensions": split.X_learn.shape[1],
        "classes": len(np.unique(split.y_learn)),
        "held_out": "classes" if found.by_class else "rows",
        "splits": found.splits,
        "methods": {method: told for method, told in every.items() if told is not None},
    }


def time_of(told: dict[str, Any]) -> float:
    """Of the processor, which has one thread: others may use the machine at the same time. By the clock where killed."""
    return float(told.get("processor_seconds", told["seconds"]))


def in_short(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Where our mAP is at least the best rival's, and how many times as long NCA takes with many rows."""
    at_least: list[str] = []
    worse: list[str] = []
    ratios: dict[str, float] = {}
    for name, each in found.items():
        methods = each["methods"]
        rivals = [methods[rival]["map"] for rival in RIVALS if "map" in methods.get(rival, {})]
        if "ours" not in methods or not rivals:
            continue
        (at_least if methods["ours"]["map"] >= max(rivals) else worse).append(name)
        if each["rows"] >= MANY and "nca" in methods:
            ratios[name] = time_of(methods["nca"]) / time_of(methods["ours"])
    return {"at_least_the_best_rival": at_least, "worse": worse, "nca_takes_times_as_long": ratios}


def write(to: Path, about: dict[str, Any]) -> None:
    found = {name: of_data_set(name) for name in DATA_SETS if any((KEPT / "fits").glob(f"{name}-?-*.json"))}
    write_record(to, about | {"data_sets": found, "summary": in_short(found)})


def rival_python() -> str:
    """Of an environment with metric-learn, made where it is not there."""
    folder = KEPT / "metric-learn"
    python = folder / "bin" / "python"
    if not (folder / "is-whole").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *RIVAL_PACKAGES], check=True)
        (folder / "is-whole").touch()
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800, help="most that a fit may take")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="most that all may take")
    parser.add_argument("--memory", type=float, default=16, help="most GiB that a fit may have")
    parser.add_argument("--at-once", type=int, default=1, help="fits of LMNN at a time")
    parser.add_argument("--rival-python", help="of an environment with metric-learn")
    parser.add_argument("--to", type=Path, default=FOLDER / "ranking_transformer.json")
    options = parser.parse_args()
    limits = Limits(options.seconds, time.monotonic() + 60 * options.minutes, options.memory)
    python = options.rival_python or rival_python()
    about = circumstances(SEED) | {"threads": 1, "seconds": options.seconds, "memory_gib": options.memory}
    for task in tasks_in_turn():
        do(task, limits)
        write(options.to, about)
    with ThreadPoolExecutor(options.at_once) as pool:
        for done in as_completed([pool.submit(do, task, limits, python) for task in tasks_of_lmnn()]):
            done.result()  # complains where it failed
            write(options.to, about)
    print(json.dumps(json.loads(options.to.read_text())["summary"], indent=1))


if __name__ == "__main__":
    main()
