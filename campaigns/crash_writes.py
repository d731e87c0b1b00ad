"""The n-th write fails, for every n: in every way that a write can fail, once or from then on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .disturbing import Trial
from .failing import Failing

MANY = 2**40


@dataclass(frozen=True)
class Mode:
    """How the n-th write fails.

    error    what the system says; 0: it says nothing, the write takes one half
    lasts    so do all after it
    halves   the n-th write takes one half first
    """

    name: str
    error: int
    lasts: bool
    halves: bool = False


MODES = (
    Mode("no room, once", errno.ENOSPC, False),
    Mode("no room from then on", errno.ENOSPC, True),
    Mode("half a write, then no room", errno.ENOSPC, True, True),
    Mode("a broken disk, once", errno.EIO, False),
    Mode("a broken disk from then on", errno.EIO, True),
    Mode("half a write, once", 0, False, True),
    Mode("half a write from then on", 0, True, True),
)


def failing_writes(trial: Trial, mode: Mode, reference: Path, step: int = 1) -> Iterator[tuple[int, list[str]]]:
    """For n = 1, 2, 3, … what is wrong after the n-th write has failed, until the work no longer comes to the n-th."""
    trial.fresh()
    writes, problems = one(trial, Mode("none", 0, False), MANY, reference)
    if problems or writes >= MANY:
        raise RuntimeError(f"undisturbed, {trial.workload.name} is wrong: {problems}")
    for number in range(1, writes + 1, step):
        trial.fresh()
        yield number, one(trial, mode, number, reference)[1]


def one(trial: Trial, mode: Mode, number: int, reference: Path) -> tuple[int, list[str]]:
    """How many writes there were, and what is wrong."""
    failing = Failing()

    def arm() -> None:
        failing.arm(trial.folder, number, mode.error, lasts=mode.lasts, halves=mode.halves)

    def disarm() -> int:
        calls = failing.calls
        failing.arm(trial.folder, 0, 0, lasts=False, halves=False)
        return calls

    ended = trial.start(arm, disarm).wait()
    trial.learn()
    outcome = trial.outcome(ended)
    calls = int(outcome.get("last", MANY))
    problems = [f"no sentence, but: {outcome['traceback']}"] if "traceback" in outcome else []
    if not mode.error and "error" in outcome:
        problems.append(f"half a write is no error: {outcome['error']}")
    return calls, problems + trial.problems(reference)
