"""Processes that are killed, at random moments."""

from __future__ import annotations

import random
import time
from pathlib import Path

from .disturbing import Trial

MOST = 5  # attempts for one kill: some work is done before its time


def killed(trial: Trial, kills: int, seconds: float, chance: random.Random, reference: Path) -> tuple[int, list[str]]:
    """How often it was killed while it worked, and what is wrong afterwards.

    seconds   that it takes undisturbed
    """
    count = 0
    for _ in range(MOST * kills):
        child = trial.start()
        trial.wait_until_it_starts()
        time.sleep(chance.uniform(0, seconds))
        child.kill()
        ended = child.wait()
        trial.learn()
        was_killed = ended.code == -9 and not ended.stopped
        count += was_killed
        if not was_killed and "done" not in trial.outcome(ended):
            return count, [f"undisturbed, it fails: {trial.outcome(ended)}"]
        is_last = count == kills
        if (is_last or not was_killed or trial.workload.is_endless) and (problems := trial.problems(reference)):
            return count, problems
        if is_last:
            break
        if not was_killed:  # it was done before its time
            trial.fresh()
    return count, []
