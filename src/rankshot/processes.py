"""The processes that torchrun has started, joined so that `gathering` finds them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import torch
from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from .gathering import hearing_of_losses, is_shared, rank, world_size

PATIENCE = 60.0  # seconds, with a process that does not answer
LONG_PATIENCE = 1800.0  # where one may be much slower than another
TOLD_BY_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
_steps = count()
_store: Any = None  # of torch.distributed, by which the processes have found one another


def is_restart() -> bool:
    """Whether torchrun has started this process in place of one that has ended."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def may_restart() -> bool:
    """Whether torchrun would start processes again when one ends."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def processes_here() -> int:
    """How many there are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if is_shared() else 1


def check_gpus(device: torch.device) -> None:
    """A GPU for each process."""
    here, gpus = processes_here(), torch.cuda.device_count()
    if device.type == "cuda" and here > gpus:
        raise ValueError(f"there are {here} processes on this machine and {gpus} GPUs: start one for each, or --device cpu")


@contextmanager
def joined(patience: float = PATIENCE) -> Iterator[None]:
    """From here on the processes of one torchrun know one another. Of a process by itself nothing changes.

    patience   with one that lives but does not answer, in seconds, unless RANKSHOT_PATIENCE tells; that one has ended is
               seen at once
    """
    global _store
    is_told = all(name in os.environ for name in TOLD_BY_TORCHRUN) and not os.environ.get("RANKSHOT_ALONE")
    if not is_told or distributed.is_initialized():
        yield
        return
    here, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if here < gpus:
        torch.cuda.set_device(here)
    # Small messages take the way from CPU to CPU, also where the work is on GPUs.
    backend = "cpu:gloo,cuda:nccl" if gpus and distributed.is_nccl_available() else "gloo"
    try:
        limit = timedelta(seconds=float(os.environ.get("RANKSHOT_PATIENCE") or patience))
        store, number, world = next(rendezvous("env://", timeout=min(limit, timedelta(seconds=PATIENCE))))
        # After a restart the store may still hold what the processes before have told one another.
        store = PrefixStore(f"rankshot/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        distributed.init_process_group(backend, store=store, rank=number, world_size=world, timeout=limit)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        how = "where this is a command within a process of torchrun, set RANKSHOT_ALONE=1"
        raise ConnectionError(f"process {os.environ['RANK']} finds no other at {where}: {error}. {how}") from None
    _store = store
    # The group lasts as long as the process, which should end by `os._exit`: gloo aborts now and then when a group is
    # destroyed while the other side is leaving too.
    yield


@contextmanager
def first_of_machine_first() -> Iterator[None]:
    """The first process of each machine does what follows before its others, which find there what it has made.

    Then all have met, however long it took: nobody loses patience with a machine that is slower.
    """
    if not is_shared() or _store is None:
        yield
        return
    step, here = f"rankshot/{next(_steps)}", int(os.environ["GROUP_RANK"])
    is_first_here = int(os.environ["LOCAL_RANK"]) == 0
    if not is_first_here:
        _wait_for([f"{step}/machine/{here}"])
    try:
        yield
    finally:
        if is_first_here:
            _store.set(f"{step}/machine/{here}", "")
        _store.set(f"{step}/process/{rank()}", "")
        _wait_for([f"{step}/process/{each}" for each in range(world_size())])


def _wait_for(keys: list[str]) -> None:
    """As long as it takes: torchrun ends all processes when one has ended."""
    with hearing_of_losses():
        while not _store.check(keys):
            time.sleep(0.1)
