"""Which crashes are tried: how much of what is killed, on how full a disk, and which writes fail."""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
from collections.abc import Sequence
from typing import Any

from . import crash_disks, failing
from .crash_writes import MODES
from .work_folders import Exporting, Preparing, Saving
from .work_gallery import Pictures, Vectors
from .work_runs import LONG, SHORT, Evaluation, Training
from .workloads import Workload

Told = dict[str, Any]  # a trial, as JSON has it

# With how many of a hundred kills each.
KILLED: tuple[tuple[Workload, int], ...] = (
    (Vectors(None), 27),
    (Vectors(None, "faiss:"), 6),
    (Pictures(), 13),
    (Training(LONG, "train"), 24),
    (Preparing(), 10),
    (Saving(3), 10),
    (Evaluation(), 7),
    (Exporting(), 3),
)
WRITTEN: tuple[Workload, ...] = (
    Vectors(5),
    Pictures(),
    Training(SHORT, "train, 3 updates"),
    Preparing(),
    Saving(1),
    Evaluation(),
    Exporting(),
)


def plan(seed: int, kills: int, rooms: int, step: int) -> list[Told]:
    """All trials, in an order that tries a little of everything early."""
    found: list[Told] = []
    chance = random.Random(f"crash/{seed}")
    known = [
        number for number, (each, _) in enumerate(KILLED) if "faiss" not in each.name or importlib.util.find_spec("faiss")
    ]
    left = kills
    while left > 0:
        which = chance.choices(known, [KILLED[number][1] for number in known])[0]
        times = min(left, chance.choice((1, 2, 3, 5)))
        found.append({"kind": "kills", "workload": which, "times": times, "seed": chance.randrange(2**40)})
        left -= times
    if crash_disks.why_not() is None:
        for which, each in enumerate(WRITTEN):
            found += [
                {"kind": "disks", "workload": which, "room": 4096 * chance.randrange(each.room // 3000)}
                for _ in range(rooms)
            ]
    if failing.TOLD in os.environ:
        found += [
            {"kind": "writes", "workload": which, "mode": mode, "step": step}
            for which in range(len(WRITTEN))
            for mode in range(len(MODES))
        ]
    return found


def workload_of(told: Told) -> Workload:
    return KILLED[told["workload"]][0] if told["kind"] == "kills" else WRITTEN[told["workload"]]


def sampled(trials: Sequence[Told], count: int, seed: int) -> list[Told]:
    """Some of every kind, chosen by the seed."""
    mixed = random.Random(seed).sample(list(trials), len(trials))
    by_kind = [[each for each in mixed if each["kind"] == kind] for kind in ("kills", "disks", "writes")]
    in_turn = [each for some in itertools.zip_longest(*by_kind) for each in some if each is not None]
    return in_turn[:count]
