"""A list of runs, worked off in order by one process or several; what is recorded already is not run again."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path

from .job import Run, perform, result_of


def work_off(runs: Sequence[Run], results: Path, folders: Path, jobs: int = 1, seconds: float | None = None) -> list[Run]:
    """Perform what has no json yet, first things first; returns what is still to do.

    folders  where the run folders are made
    seconds  begin nothing after so long
    """
    left = [run for run in runs if result_of(run, results) is None]
    ends = time.monotonic() + seconds if seconds is not None else None
    if jobs == 1:
        _take(iter(left).__next__, results, folders, 1, ends, len(left))
    else:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        with context.Manager() as manager:
            queue = manager.Queue()
            for run in left:
                queue.put(run)
            workers = [
                context.Process(target=_take, args=(queue.get_nowait, results, folders, jobs, ends, len(left)))
                for _ in range(min(jobs, len(left)))
            ]
            for each in workers:
                each.start()
            for each in workers:
                each.join()
    return [run for run in runs if result_of(run, results) is None]


def _take(next_run, results: Path, folders: Path, jobs: int, ends: float | None, of: int) -> None:
    import queue

    while ends is None or time.monotonic() < ends:
        try:
            run = next_run()
        except (StopIteration, queue.Empty):
            return
        began = time.monotonic()
        try:
            perform(run, folders / run.name, results, jobs)
        except Exception as error:  # one run that breaks down leaves the others alone
            print(f"{run.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        print(f"{run.name}: {time.monotonic() - began:.0f} s", flush=True)
