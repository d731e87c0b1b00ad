"""A list of runs, worked off in order by one process or several; what has its json already is not run again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from rankshot.limits import real, whole
from rankshot.terminal import say
from rankshot.training.stopping import Interrupted

from .job import Run, perform, result_of

MOST_JOBS, MOST_SECONDS = 256, 1e9


def run_all(runs: Sequence[Run], results: Path, folders: Path, *, jobs: int = 1, seconds: float | None = None) -> list[Run]:
    """Perform what has no json yet, first things first; returns what is still to do.

    folders  where the run folders are made: a run that was stopped goes on there
    jobs     how many at a time, each in a process of its own
    seconds  begin nothing after so long
    """
    check(jobs, seconds)
    todo = [run for run in runs if result_of(run, results) is None]
    ends = None if seconds is None else time.time() + seconds
    jobs = min(jobs, max(1, len(todo)))
    if jobs == 1:
        left = iter(todo)
        _take(lambda: next(left, None), results, folders, 1, ends)
    else:
        _together(todo, results, folders, jobs, ends)
    return [run for run in runs if result_of(run, results) is None]


def check(jobs: int, seconds: float | None) -> None:
    whole("jobs", jobs, 1, MOST_JOBS)
    if seconds is not None:
        real("seconds", seconds, 0, MOST_SECONDS)


def _together(todo: Sequence[Run], results: Path, folders: Path, jobs: int, ends: float | None) -> None:
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    waiting = context.Queue()
    for run in [*todo, *[None] * jobs]:
        waiting.put(run)
    workers = [context.Process(target=_worker, args=(waiting.get, results, folders, jobs, ends)) for _ in range(jobs)]
    with _held_back():
        for worker in workers:
            worker.start()
    if threading.current_thread() is threading.main_thread():  # who ends us ends them: they write their checkpoints
        before = signal.signal(signal.SIGTERM, lambda *_: _end(workers))
    try:
        for worker in workers:
            worker.join()
    except KeyboardInterrupt:  # the workers have heard it too, and write their checkpoints
        for worker in workers:
            worker.join()
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
        waiting.cancel_join_thread()
        waiting.close()


def _end(workers: Sequence[BaseProcess]) -> None:
    for worker in workers:
        worker.terminate()


@contextmanager
def _held_back() -> Iterator[None]:
    """Ctrl-C waits; also for a process that is begun now, until it is ready to hear of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker(*arguments: Any) -> None:
    """In a process of its own, which Ctrl-C ends without a word: who began it has one."""
    try:
        with suppress(KeyboardInterrupt):
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            _take(*arguments)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _take(next_run: Callable[[], Run | None], results: Path, folders: Path, jobs: int, ends: float | None) -> None:
    """One run after another, until there is none, or it is too late to begin one."""
    if jobs > 1:  # each with its share of the cores: threads that wait for one another's cores hold a GPU up too
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    while ends is None or time.time() < ends:
        run = next_run()
        if run is None:
            return
        began = time.time()
        try:
            perform(run, folders / run.name, results, side_by_side=jobs)
        except Interrupted:
            if jobs == 1:
                raise
            return
        except (ValueError, OSError, RuntimeError) as error:  # one run that breaks down leaves the others alone
            say(f"{run.name}: {error}")
            if gpu_is_lost():
                say("the GPU answers this process no more, and every other run would fail as well: call again to go on")
                return
        else:
            say(f"{run.name}: {time.time() - began:.0f} s")


def gpu_is_lost() -> bool:
    """Whether this process can compute on its GPU no more: an error of one kernel, of another process even where several
    share the GPU through NVIDIA's MPS, is final for all that a process does there."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False
