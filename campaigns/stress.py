"""Threads and processes on one gallery, and every answer judged: `python -m campaigns.stress [local faiss lite server]`.

Each thread owns a row of items, numbered 0, 1, 2, …: it adds at the end, deletes at the beginning, and searches between. An
item's vector and metadata follow from its number, so that every hit can be judged. Counters that all processes share tell
how far each thread has come; read before and after a search, they tell which items were there all the while, and which
cannot have been. A hit that cannot have been there is wrong, and so is another's metadata, a filter that is not met, a
similarity that is not the cosine. A local gallery is exact: an item that was there all the while and is nearer than the
last hit must have been found too.

Writes results/campaigns/stress.json; the exit code is 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.server import served
from rankshot.gallery import Gallery
from rankshot.hardware import circumstances

RESULTS = Path(__file__).parent.parent / "results" / "campaigns"
DIMENSIONS, TABLE, COLOURS = 64, 2**17, ("red", "green", "blue", "grey", "white")
ADD_BEGUN, ADD_DONE, DELETE_BEGUN, DELETE_DONE = range(4)
CLOSE = 1e-5  # two similarities that the order of sums may set apart
KEPT = 20  # descriptions of what was wrong


@dataclass(frozen=True)
class Setup:
    """Where, and by how many."""

    uri: str
    counters: str
    processes: int
    threads: int
    vectors: int
    seconds: float
    exact: bool
    seed: int

    @property
    def share(self) -> int:
        """Items of each thread to begin with."""
        return self.vectors // (self.processes * self.threads)


class Items:
    """What every item is, by its owner and number."""

    def __init__(self, seed: int) -> None:
        table = np.random.default_rng(seed).normal(size=(TABLE, DIMENSIONS)).astype(np.float32)
        self.table: NDArray[np.float32] = table / np.linalg.norm(table, axis=1, keepdims=True)

    def places(self, owner: int | NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return (owner * 7919 + numbers * 104_729 + numbers // 3) % TABLE

    def vectors(self, owner: int, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.table[self.places(owner, numbers)]

    @staticmethod
    def id(owner: int, number: int) -> str:
        return f"{owner}-{number}"

    @staticmethod
    def metadata(owner: int, number: int) -> dict[str, Any]:
        return {"colour": COLOURS[(owner + number) % len(COLOURS)], "owner": owner, "number": number}


class Worker:
    """One thread: changes its own items, and judges what it finds of all."""

    def __init__(self, setup: Setup, items: Items, gallery: Gallery, counters: NDArray[np.int64], owner: int) -> None:
        self.setup, self.items, self.gallery, self.counters, self.owner = setup, items, gallery, counters, owner
        self.random = np.random.default_rng([setup.seed, owner])
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self) -> None:
        ends = time.monotonic() + self.setup.seconds
        while time.monotonic() < ends:
            act = (self.search, self.search, self.search, self.add, self.delete)[self.random.integers(5)]
            try:
                act()
                self.done[act.__name__] += 1
            except Exception:  # whatever it is, it is what we are looking for
                self.wrong.append(traceback.format_exc(limit=4))

    def add(self) -> None:
        mine = self.counters[self.owner]
        start, count = int(mine[ADD_DONE]), int(self.random.integers(1, 20))
        numbers = range(start, start + count)
        mine[ADD_BEGUN] = start + count
        self.gallery.add(
            self.items.vectors(self.owner, np.array(numbers)),
            [self.items.id(self.owner, number) for number in numbers],
            [self.items.metadata(self.owner, number) for number in numbers],
        )
        mine[ADD_DONE] = start + count

    def delete(self) -> None:
        mine = self.counters[self.owner]
        start = int(mine[DELETE_DONE])
        count = min(int(self.random.integers(1, 20)), int(mine[ADD_DONE]) - start)
        if count < 1:
            return
        mine[DELETE_BEGUN] = start + count
        self.gallery.delete([self.items.id(self.owner, number) for number in range(start, start + count)])
        mine[DELETE_DONE] = start + count

    def search(self) -> None:
        query = self.items.table[self.random.integers(TABLE)]
        k = int(self.random.integers(1, 30))
        colour = str(self.random.choice(COLOURS)) if self.random.random() < 0.5 else None
        before = self.counters.copy()
        hits = self.gallery.search(query, k, None if colour is None else {"colour": colour})
        after = self.counters.copy()
        for hit in hits:
            if problem := self._problem(hit, query, colour, before, after):
                self.wrong.append(f"{problem}: {hit}")
        near = [hit.similarity for hit in hits]
        if len({hit.id for hit in hits}) < len(hits) or near != sorted(near, reverse=True):
            self.wrong.append(f"not in order, or twice: {hits}")
        if self.setup.exact:
            self._check_complete(hits, query, k, colour, before, after)

    def _problem(
        self, hit: Any, query: NDArray[np.float32], colour: str | None, before: NDArray[Any], after: NDArray[Any]
    ) -> str | None:
        owner, number = map(int, hit.id.split("-"))
        if number >= after[owner, ADD_BEGUN]:
            return "never added"
        if number < before[owner, DELETE_DONE]:
            return "deleted before"
        if hit.metadata != self.items.metadata(owner, number):
            return "another's metadata"
        if colour is not None and hit.metadata["colour"] != colour:
            return f"not {colour}"
        (vector,) = self.items.vectors(owner, np.array([number]))
        return "not its similarity" if abs(float(vector @ query) - hit.similarity) > CLOSE else None

    def _check_complete(
        self, hits: Any, query: NDArray[np.float32], k: int, colour: str | None, before: NDArray[Any], after: NDArray[Any]
    ) -> None:
        """Whatever was there all the while and is nearer than the last hit was found."""
        owners, numbers = [], []
        for owner in range(len(before)):
            present = np.arange(after[owner, DELETE_BEGUN], before[owner, ADD_DONE])
            if colour is not None:
                present = present[(owner + present) % len(COLOURS) == COLOURS.index(colour)]
            owners.append(np.full(len(present), owner))
            numbers.append(present)
        owner_of, number_of = np.concatenate(owners), np.concatenate(numbers)
        similarities = self.items.table[self.items.places(owner_of, number_of)] @ query
        least = hits[-1].similarity if len(hits) == k else -2.0
        found = {hit.id for hit in hits}
        for index in np.flatnonzero(similarities > least + CLOSE):
            if (id := self.items.id(int(owner_of[index]), int(number_of[index]))) not in found:
                self.wrong.append(f"{id} at {similarities[index]:.6f} was there and is not among {len(hits)} of {k} hits")


def opened_counters(path: str, setup: Setup) -> NDArray[np.int64]:
    return np.memmap(path, np.int64, "r+", shape=(setup.processes * setup.threads, 4))


def process(setup: Setup, number: int, ready: Any, results: Any) -> None:
    """One process with its threads, which share one gallery. Time counts when all are `ready`, their indexes made."""
    items, counters = Items(setup.seed), opened_counters(setup.counters, setup)
    sys.setswitchinterval(1e-4)  # threads that meet more often
    with Gallery.open(setup.uri) as gallery:
        gallery.search(items.table[0], 1)
        ready.wait()
        first = number * setup.threads
        workers = [Worker(setup, items, gallery, counters, first + k) for k in range(setup.threads)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    done = sum((worker.done for worker in workers), Counter())
    results.put((dict(done), [problem for worker in workers for problem in worker.wrong]))


def stressed(setup: Setup) -> dict[str, Any]:
    """All of it once; what was done, and what was wrong."""
    items, counters = Items(setup.seed), opened_counters(setup.counters, setup)
    with Gallery(setup.uri, dimensions=DIMENSIONS) as gallery:
        for owner in range(setup.processes * setup.threads):
            numbers = np.arange(setup.share)
            gallery.add(
                items.vectors(owner, numbers),
                [items.id(owner, number) for number in range(setup.share)],
                [items.metadata(owner, number) for number in range(setup.share)],
            )
        counters[:] = [setup.share, setup.share, 0, 0]
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(setup.processes), context.Queue()
    if setup.processes == 1:
        process(setup, 0, ready, results)
        answers = [results.get()]
    else:
        given = [(setup, number, ready, results) for number in range(setup.processes)]
        processes = [context.Process(target=process, args=arguments) for arguments in given]
        for child in processes:
            child.start()
        answers = [results.get(timeout=setup.seconds + 600) for _ in processes]
        for child in processes:
            child.join()
    with Gallery.open(setup.uri) as gallery:
        left = int((counters[:, ADD_DONE] - counters[:, DELETE_DONE]).sum())
        wrong = [problem for _, problems in answers for problem in problems]
        wrong += [] if len(gallery) == left else [f"{len(gallery)} images are left, {left} should be"]
        wrong += gallery.store.verify()
    done = sum((Counter(counts) for counts, _ in answers), Counter())
    return {"done": dict(done), "wrong": len(wrong), "first_wrong": wrong[:KEPT], "images_left": left}


@contextmanager
def place_for(store: str, folder: Path) -> Iterator[str]:
    """Where a gallery of this kind may be made."""
    if store != "server":
        yield {"local": str(folder / "g"), "faiss": f"faiss:{folder / 'g'}", "lite": str(folder / "g.db")}[store]
        return
    with served(folder / "server") as server:
        yield f"{server.uri}/stress"


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("stores", nargs="*", default=["local", "faiss", "lite", "server"])
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--vectors", type=int, default=100_000)
    asked.add_argument("--processes", type=int, default=4)
    asked.add_argument("--threads", type=int, default=16)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--no-record", action="store_true", help="write no results")
    given = asked.parse_args()
    path = RESULTS / "stress.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    failed = False
    for store in given.stores:
        with tempfile.TemporaryDirectory(prefix="rankshot-stress-") as folder, place_for(store, Path(folder)) as uri:
            processes = 1 if store == "lite" else given.processes
            threads = given.threads if store != "server" else max(1, given.threads // given.processes)
            counters = f"{folder}/counters"
            Path(counters).write_bytes(bytes(8 * 4 * processes * threads))
            exact = store == "local"
            setup = Setup(uri, counters, processes, threads, given.vectors, given.seconds, exact, given.seed)
            result = stressed(setup)
        settings = {"processes": processes, "threads_each": threads, "vectors": given.vectors, "seconds": given.seconds}
        print(f"{store}: {settings}: {result}", flush=True)
        failed |= result["wrong"] > 0
        record[store] = {**circumstances(given.seed), **settings, **result}
    if not given.no_record:
        RESULTS.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
