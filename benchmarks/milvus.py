"""A gallery past one machine, rehearsed on one: `python -m benchmarks.milvus`, some ten minutes on two cores.

Two processes add 1,000,000 vectors to a real Milvus server (see `server`). When half of them are there the server is killed
and started again, and the processes go on. Then everything that is there is compared with what was added, and searched; and
the server is killed once more, to see how long it takes until it answers. All of it goes through `Gallery`, as with vectors
of one's own. Writes results/benchmarks/milvus.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.gallery import Gallery, Hit
from rankshot.gallery.nearest import nearest
from rankshot.gallery.store import Vectors
from rankshot.hardware import circumstances

from .adding import Adding, add
from .clusters import Clusters
from .measure import resident, timed
from .places import FOLDER
from .server import NoServer, Server, start

K = 10
MOST_ERROR = 1e-6  # of a number of a vector that was of length 1 before


class Rehearsal:
    """One server after another on the same folder and port, and what was measured of each."""

    def __init__(self, folder: Path, items: Clusters) -> None:
        self.folder, self.items, self.kills = folder, items, 0
        self.peak = 0
        self.server = start(folder)
        self.uri = f"{self.server.uri}/images"
        self.interruption: dict[str, float] = {}

    def kill_at_half(self, there: int) -> None:
        if not self.kills and there >= self.items.vectors / 2:
            self.interruption = {"vectors": there, "at": time.monotonic(), "listens_s": self.kill_and_start()}
            say(f"killed at {there:,} vectors and started again")

    def kill_and_start(self) -> float:
        """Seconds from the kill until it listens again."""
        self.note_peak()
        self.kills += 1
        begin, port = time.monotonic(), self.server.port
        self.server.kill()
        self.server = start(self.folder, port)
        return time.monotonic() - begin

    def note_peak(self) -> None:
        self.peak = max(self.peak, resident("VmHWM", self.server.pid))

    @property
    def memory(self) -> int:
        return resident("VmRSS", self.server.pid)


def main() -> None:
    options = asked()
    items = Clusters(options.vectors, options.dimensions, options.clusters, options.batch, options.seed)
    with tempfile.TemporaryDirectory(prefix="rankshot-milvus-") as folder:
        try:
            rehearsal = Rehearsal(Path(folder), items)
        except NoServer as error:
            sys.exit(str(error))
        try:
            measured = rehearse(rehearsal, options.processes, options.queries)
        finally:
            rehearsal.server.stop()
    results = circumstances(options.seed) | {"config": config(options, items)} | measured
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--clusters", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2, help="that add")
    parser.add_argument("--batch", type=int, default=10_000, help="vectors in a call of Gallery.add")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, default=FOLDER / "milvus.json")
    return parser.parse_args()


def config(options: argparse.Namespace, items: Clusters) -> dict[str, Any]:
    return asdict(items) | {
        "processes": options.processes,
        "queries": options.queries,
        "k": K,
        "server": f"Milvus standalone, of the package milvus {version('milvus')}: one process, with etcd and log built in",
        "client": f"pymilvus {version('pymilvus')}",
        "machine_memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def rehearse(rehearsal: Rehearsal, processes: int, queries: int) -> dict[str, Any]:
    items = rehearsal.items
    Gallery(rehearsal.uri, dimensions=items.dimensions).close()
    adding = add(rehearsal.uri, items, processes, rehearsal.kill_at_half)
    say("added")
    rehearsal.note_peak()
    memory, disk = {"added": rehearsal.memory}, {"added": on_disk(rehearsal.folder / "data")}
    everything = np.concatenate([items.vectors_of(batch) for batch in range(items.batches)])
    asked_for = items.queries(queries)
    exact = [[items.id(row) for row in rows] for rows, _ in nearest(everything, None, asked_for, K)]
    with Gallery.open(rehearsal.uri) as gallery:
        there = what_is_there(gallery, items, everything)
        say(f"compared: {there}")
        searching = searches(gallery, asked_for, exact)
    eventual = without_waiting(rehearsal.server, asked_for[: max(1, queries // 5)])
    say("searched")
    memory["searched"] = rehearsal.memory
    restarting = first_answer(rehearsal, asked_for, exact)
    rehearsal.note_peak()
    memory |= {"restarted": rehearsal.memory, "peak": rehearsal.peak}
    disk["restarted"] = on_disk(rehearsal.folder / "data")
    return {
        "adding": rates(adding, items, rehearsal.interruption),
        "there": there,
        "searching": searching | {"eventual_ms": eventual},
        "restarting": restarting,
        "server_memory_bytes": memory,
        "disk_bytes": disk,
    }


def rates(adding: Adding, items: Clusters, interruption: dict[str, float]) -> dict[str, Any]:
    """Vectors a second of all processes together: until the kill, of the last quarter, and of all, the restart too."""
    at, end = interruption["at"], adding.steps[-1].at
    back = next(step.at for step in adding.steps if step.at > at + interruption["listens_s"])
    quarter = adding.steps[-(len(adding.steps) // 4 + 1) :]  # from the end of its first batch on
    last = sum(len(items.numbers(step.batch)) for step in quarter[1:])
    return {
        "seconds": end - adding.began,
        "vectors_a_second": {
            "until_the_kill": interruption["vectors"] / (at - adding.began),
            "last_quarter": last / (end - quarter[0].at),
            "of_all": items.vectors / (end - adding.began),
        },
        "killed_at_vectors": interruption["vectors"],
        "listens_again_s": interruption["listens_s"],
        "adds_again_s": back - at,
        "errors": [error for step in adding.steps for error in step.errors],
    }


def what_is_there(gallery: Gallery, items: Clusters, everything: Vectors) -> dict[str, Any]:
    """Every id once, with its own vector and metadata: anything else is an error."""
    begin = time.perf_counter()
    times = np.zeros(items.vectors, int)
    for ids, vectors, notes, _ in gallery.store.chunks():
        numbers = [note["number"] for note in notes]
        if ids != [items.id(number) for number in numbers]:
            raise AssertionError("an id has the metadata of another")
        if np.abs(vectors - everything[numbers]).max() > MOST_ERROR:
            raise AssertionError("an id has the vector of another")
        np.add.at(times, numbers, 1)
    if len(gallery) != items.vectors or (times != 1).any():
        raise AssertionError(f"{(times == 0).sum()} are missing and {(times > 1).sum()} there twice, of {len(gallery)}")
    return {"vectors": int(times.sum()), "missing": 0, "twice": 0, "read_in_s": time.perf_counter() - begin}


def searches(gallery: Gallery, queries: Vectors, exact: list[list[str]]) -> dict[str, Any]:
    seconds, found = [], []
    for query in queries:
        begin = time.perf_counter()
        found.append(gallery.search(query, K))
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    together = gallery.search_each(queries, K)
    return {
        "recall_at_10": recall(found, exact),
        "single_ms": percentiles(seconds),
        "together_ms_a_query": 1000 * (time.perf_counter() - begin) / len(queries),
        "together_recall_at_10": recall(together, exact),
    }


def without_waiting(server: Server, queries: Vectors) -> dict[str, float]:
    """What the search itself takes: a gallery's waits until the server has seen all that was written before (strong)."""
    from pymilvus import MilvusClient

    client = MilvusClient(server.uri)
    search = partial(client.search, "images", limit=K, output_fields=["metadata"], consistency_level="Eventually")
    seconds = [timed(partial(search, [query])) for query in queries]
    client.close()
    return percentiles(seconds)


def first_answer(rehearsal: Rehearsal, queries: Vectors, exact: list[list[str]]) -> dict[str, Any]:
    """From `kill -9` until a gallery that is opened anew has answered rightly."""
    begin = time.monotonic()
    listens = rehearsal.kill_and_start()
    errors: list[str] = []
    while True:
        try:
            gallery = Gallery.open(rehearsal.uri)
            hits = gallery.search(queries[0], K)
            break
        except ConnectionError as error:
            errors.append(str(error))
            time.sleep(1)
    seconds = time.monotonic() - begin
    with gallery:
        seconds_each = [timed(partial(gallery.search, query, K)) for query in queries[:100]]
        count = len(gallery)
    return {
        "listens_again_s": listens,
        "first_answer_s": seconds,
        "first_recall_at_10": recall([hits], exact[:1]),
        "single_ms": percentiles(seconds_each),
        "vectors": count,
        "errors": errors,
    }


def recall(found: list[list[Hit]], exact: list[list[str]]) -> float:
    shares = [len({hit.id for hit in hits} & set(ids)) / len(ids) for hits, ids in zip(found, exact, strict=True)]
    return float(np.mean(shares))


def percentiles(seconds: list[float]) -> dict[str, float]:
    return {f"p{share}": 1000 * float(np.percentile(seconds, share)) for share in (50, 95, 99)}


def on_disk(folder: Path) -> dict[str, int]:
    """Bytes that the files of each part take."""
    taken: dict[str, int] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            part = path.relative_to(folder).parts[0]
            taken[part] = taken.get(part, 0) + 512 * path.stat().st_blocks
    return taken | {"all": sum(taken.values())}


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
