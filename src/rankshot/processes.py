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
from .limits import real

PATIENCE = 60.0  # seconds, with a process that does not answer
LONG_PATIENCE = 1800.0  # where one may be much slower than another
TOLD_BY_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
_steps = count()
_parent: int | None = None  # torchrun's process, of one that it has started
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


def is_orphan() -> bool:
    """Whether torchrun itself has ended, so that nobody would end this process."""
    return _parent is not None and os.getppid() != _parent


def _is_one_of_several() -> bool:
    """Whether torchrun has started this process; RANKSHOT_ALONE=1 is for a command within such a process."""
    if os.environ.get("RANKSHOT_ALONE") or "RANK" not in os.environ:
        return False
    missing = [name for name in TOLD_BY_TORCHRUN if name not in os.environ]
    if missing and os.environ.get("WORLD_SIZE", "1") != "1":
        several = f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set"
        raise ValueError(f"{several}: start it by torchrun, which sets them all, or alone with RANKSHOT_ALONE=1")
    return not missing


def _patience() -> float | None:
    """What RANKSHOT_PATIENCE says."""
    given = os.environ.get("RANKSHOT_PATIENCE")
    try:
        return real("RANKSHOT_PATIENCE", float(given), 1, 1e6) if given else None
    except ValueError:
        raise ValueError(f"RANKSHOT_PATIENCE must be seconds, from 1 to 1,000,000, got {given!r}") from None


@contextmanager
def joined(patience: float = PATIENCE) -> Iterator[None]:
    """From here on the processes of one torchrun know one another. Of a process by itself nothing changes.

    patience   with one that lives but does not answer, in seconds, unless RANKSHOT_PATIENCE tells; that one has ended is
               seen at once
    """
    global _store, _parent
    if not _is_one_of_several() or distributed.is_initialized():
        yield
        return
    here, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if here < gpus:
        torch.cuda.set_device(here)
    limit = timedelta(seconds=_patience() or patience)
    # Small messages take the way from CPU to CPU, also where the work is on GPUs.
    backend = "cpu:gloo,cuda:nccl" if gpus and distributed.is_nccl_available() else "gloo"
    try:
        store, number, world = next(rendezvous("env://", timeout=min(limit, timedelta(seconds=PATIENCE))))
        # After a restart the store may still hold what the processes before have told one another.
        store = PrefixStore(f"rankshot/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        distributed.init_process_group(backend, store=store, rank=number, world_size=world, timeout=limit)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        how = "where this is a command within a process of torchrun, set RANKSHOT_ALONE=1"
        raise ConnectionError(f"process {os.environ['RANK']} finds no other at {where}: {error}. {how}") from None
    _store, _parent = store, os.getppid()
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
