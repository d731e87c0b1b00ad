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

Planned = dict[str, Any]  # a trial, as JSON has it

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


def plan(seed: int, kills: int, rooms: int, step: int) -> list[Planned]:
    """All trials, in an order that tries a little of everything early."""
    trials: list[Planned] = []
    chance = random.Random(f"crash/{seed}")
    known = [
        number
        for number, (workload, _) in enumerate(KILLED)
        if "faiss" not in workload.name or importlib.util.find_spec("faiss")
    ]
    left = kills
    while left > 0:
        which = chance.choices(known, [KILLED[number][1] for number in known])[0]
        times = min(left, chance.choice((1, 2, 3, 5)))
        trials.append({"kind": "kills", "workload": which, "times": times, "seed": chance.randrange(2**40)})
        left -= times
    if crash_disks.why_not() is None:
        for which, workload in enumerate(WRITTEN):
            trials += [
                {"kind": "disks", "workload": which, "room": 4096 * chance.randrange(workload.room // 3000)}
                for _ in range(rooms)
            ]
    if failing.TOLD in os.environ:
        trials += [
            {"kind": "writes", "workload": which, "mode": mode, "step": step}
            for which in range(len(WRITTEN))
            for mode in range(len(MODES))
        ]
    return trials


def workload_of(planned: Planned) -> Workload:
    return KILLED[planned["workload"]][0] if planned["kind"] == "kills" else WRITTEN[planned["workload"]]


def sampled(trials: Sequence[Planned], count: int, seed: int) -> list[Planned]:
    """Some of every kind, chosen by the seed."""
    mixed = random.Random(seed).sample(list(trials), len(trials))
    by_kind = [[trial for trial in mixed if trial["kind"] == kind] for kind in ("kills", "disks", "writes")]
    in_turn = [trial for turn in itertools.zip_longest(*by_kind) for trial in turn if trial is not None]
    return in_turn[:count]
