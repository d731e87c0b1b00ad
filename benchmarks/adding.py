"""Processes that add to one gallery, each its share, and go on when the server was away."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from rankshot.gallery import Gallery

from .clusters import Clusters

PATIENCE = 300.0  # seconds without a batch, after which something is wrong


class Step(NamedTuple):
    """A batch that is there, when (`time.monotonic`), and what went wrong until it was."""

    batch: int
    at: float
    errors: list[str]


class Adding(NamedTuple):
    """When it began, and all steps in their order."""

    began: float
    steps: list[Step]


def add(uri: str, items: Clusters, processes: int, between: Callable[[int], None]) -> Adding:
    """All of them; `between` is told after every batch how many vectors are there."""
    context = multiprocessing.get_context("spawn")
    done: Queue[Step] = context.Queue()
    opened = context.Barrier(processes + 1, timeout=PATIENCE)  # nobody adds before all have the gallery open
    children = [
        context.Process(target=_share, args=(uri, items, number, processes, opened, done)) for number in range(processes)
    ]
    try:
        for child in children:
            child.start()
        opened.wait()
        adding, there = Adding(time.monotonic(), []), 0
        for _ in range(items.batches):
            step = done.get(timeout=PATIENCE)
            adding.steps.append(step)
            there += len(items.numbers(step.batch))
            between(there)
    except BaseException:
        for child in children:
            child.kill()
        raise
    for child in children:
        child.join()
    return adding


def _share(uri: str, items: Clusters, number: int, processes: int, opened: Barrier, done: Queue[Step]) -> None:
    with Gallery.open(uri) as gallery:
        opened.wait()
        for batch in range(number, items.batches, processes):
            numbers = items.numbers(batch)
            vectors = items.vectors_of(batch)
            ids, notes = [items.id(number) for number in numbers], [items.metadata(number) for number in numbers]
            errors: list[str] = []
            while True:
                try:
                    # After an error nobody knows how much has arrived, and what has must not be refused.
                    gallery.add(vectors, ids, notes, replace=bool(errors))
                    break
                except ConnectionError as error:
                    errors.append(str(error))
                    time.sleep(1)
            done.put(Step(batch, time.monotonic(), errors))
