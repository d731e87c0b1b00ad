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

from .gathering import hearing_of_losses, is_shared

PATIENCE = timedelta(seconds=float(os.environ.get("RANKSHOT_PATIENCE", "60")))  # with a process that does not answer
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


@contextmanager
def joined(patience: timedelta = PATIENCE) -> Iterator[None]:
    """From here on the processes of one torchrun know one another. Of a process by itself nothing changes.

    patience   with one that lives but does not answer; that one has ended is seen at once
    """
    global _store
    if not all(name in os.environ for name in TOLD_BY_TORCHRUN) or distributed.is_initialized():
        yield
        return
    here, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if here < gpus:
        torch.cuda.set_device(here)
    # Small messages take the way from CPU to CPU, also where the work is on GPUs.
    backend = "cpu:gloo,cuda:nccl" if gpus and distributed.is_nccl_available() else "gloo"
    try:
        store, rank, world = next(rendezvous("env://", timeout=PATIENCE))
        # After a restart the store may still hold what the processes before have told one another.
        store = PrefixStore(f"rankshot/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        distributed.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=patience)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise ConnectionError(f"process {os.environ['RANK']} finds no other at {where}: {error}") from None
    _store = store
    # The group lasts as long as the process, which should end by `os._exit`: gloo aborts now and then when a group is
    # destroyed while the other side is leaving too.
    yield


@contextmanager
def first_of_machine_first() -> Iterator[None]:
    """The first process of each machine does what follows before its others, which find there what it has made."""
    if not is_shared() or _store is None:
        yield
        return
    done = f"rankshot/{next(_steps)}/{os.environ['GROUP_RANK']}"
    is_first_here = int(os.environ["LOCAL_RANK"]) == 0
    with hearing_of_losses():
        while not is_first_here and not _store.check([done]):  # as long as it takes: torchrun ends all when one has ended
            time.sleep(0.1)
    try:
        yield
    finally:
        if is_first_here:
            _store.set(done, "")
