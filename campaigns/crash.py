"""Crashes of every kind: `python -m campaigns.crash`. Processes killed, disks full, and the n-th write failing for every n.

Seeded, bounded in time, and it goes on where it was stopped. Writes results/campaigns/crash.json; what failed is told below
runs/campaigns/crash/failed, and `--again FILE` tries it once more. Exit code 1 if anything was found.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import crash_disks, failing
from .arena import Arena, room
from .conduct import concluded, goods_in, parser
from .crash_disks import small_disk, with_little_room
from .crash_kills import killed
from .crash_plan import Planned, plan, sampled, workload_of
from .crash_writes import MODES, failing_writes
from .disturbing import Trial
from .forks import Child, Ended, conduct, ready_to_fork
from .progress import Tally
from .turns import in_turns, stop_politely
from .workloads import Workload

KILLS, ROOMS, WORKERS = 300, 12, 2
A_TRIAL = 1800.0  # seconds that a trial may take
UNENDING = 0.4  # seconds, in which work without end is killed


class Crashes:
    """The trials, two at a time; each is led by a process of its own.

    references   what each workload leaves undisturbed, and how long that takes
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.room = room()
        self.arenas = [Arena(self.room / f"arena-{number}") for number in range(WORKERS)]
        self.goods = self.room
        self.references: dict[str, tuple[Path, float]] = {}
        self.tally = Tally.read(folder, seed)

    def close(self) -> None:
        shutil.rmtree(self.room, ignore_errors=True)

    def prepare(self, trials: Sequence[Planned]) -> None:
        """Good folders, and everything that is tried once undisturbed."""
        self.goods = goods_in(self.room / "goods", self.folder / "goods.log")
        for workload in {workload.name: workload for workload in map(workload_of, trials)}.values():
            self.references[workload.name] = self._undisturbed(workload)

    def _undisturbed(self, workload: Workload) -> tuple[Path, float]:
        folder = self.room / "references" / re.sub(r"\W", "-", workload.name)
        if workload.is_endless:
            return folder, UNENDING
        folder.mkdir(parents=True)
        trial = Trial(workload, self.arenas[0], folder).settle(self.goods)
        outcome = trial.outcome(trial.start().wait())
        trial.learn()
        problems = [] if "done" in outcome else [f"{outcome}"]
        shutil.copytree(trial.place, folder / "reference")
        problems += trial.problems(folder / "reference")
        if problems:
            raise RuntimeError(f"undisturbed, {workload.name} is wrong: {problems}")
        return folder / "reference", float(outcome["seconds"])

    def start(self, planned: Planned, arena: Arena) -> Child:
        arena.clear()

        def act() -> None:
            (arena.notes / "result").write_text(json.dumps(self.lead(planned, arena)))

        return Child(act, A_TRIAL, 2**34).start()

    def lead(self, planned: Planned, arena: Arena) -> dict[str, Any]:
        """One trial: how many disturbances there were, of what, and what was wrong."""
        workload = workload_of(planned)
        reference, seconds = self.references[workload.name]
        trial = Trial(workload, arena, arena.work / "all")
        problems: list[str] = []
        count = 0
        if planned["kind"] == "disks":
            with small_disk(trial.folder):
                was_full, wrong = with_little_room(trial.settle(self.goods), planned["room"], reference)
            count, problems = int(was_full), [f"{planned['room']} bytes of room: {problem}" for problem in wrong]
        elif planned["kind"] == "kills":
            chance = random.Random(planned["seed"])
            count, problems = killed(trial.settle(self.goods), planned["times"], seconds, chance, reference)
        else:
            mode = MODES[planned["mode"]]
            for number, wrong in failing_writes(trial.settle(self.goods), mode, reference, planned["step"]):
                count += 1
                problems += [f"{mode.name}, write {number}: {problem}" for problem in wrong]
        return {"count": count, "name": workload.name, "problems": problems}

    def run(self, trials: Sequence[Planned], seconds: float, say: Callable[[str], None]) -> None:
        began, before = time.monotonic(), self.tally.seconds

        def start(number: int, place: int) -> Child:
            return self.start(trials[number], self.arenas[place])

        def done(number: int, place: int, ended: Ended) -> None:
            path = self.arenas[place].notes / "result"
            if not path.exists():
                raise RuntimeError(f"trial {number} {trials[number]} came to nothing ({ended}): the campaign is at fault")
            self._done(number, trials[number], json.loads(path.read_text()))

        def tick() -> None:
            self.tally.seconds = before + time.monotonic() - began
            self.tally.write(self.folder)
            count = sum(self.tally.tried.values())
            say(f"{self.tally.next} of {len(trials)} trials, {count:,} disturbances, {self.tally.failures} failures")

        numbers = (number for number in range(len(trials)) if not self.tally.is_done(number))
        in_turns(WORKERS, numbers, seconds, start, done, tick)
        tick()

    def _done(self, number: int, planned: Planned, result: dict[str, Any]) -> None:
        self.tally.done(number, f"{planned['kind']}: {result['name']}", result["count"])
        for problem in result["problems"]:
            self.tally.add(planned["kind"], f"{result['name']}: {_short(problem)}", number, problem)
        if result["problems"]:
            (self.folder / "failed").mkdir(exist_ok=True)
            (self.folder / "failed" / f"{number:05}.json").write_text(json.dumps({**planned, **result}, indent=1) + "\n")


def _short(problem: str) -> str:
    """Without numbers and places, so that what is alike is counted together."""
    lines = problem.strip().splitlines() or ["?"]
    text = f"{lines[0][:160]} {lines[-1][:160] if len(lines) > 1 else ''}".strip()
    return re.sub(r"\d+", "N", re.sub(r"/\S*/", "", text))


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    failing.begin_anew_with_it(["-m", "campaigns.crash", *given])
    made = parser("crash", __doc__, KILLS, "kills")
    made.add_argument("--rooms", type=int, default=ROOMS, help="how many sizes of a full disk, for each kind of work")
    made.add_argument("--every", type=int, default=1, help="only every so-manieth n of the n-th write")
    made.add_argument("--only", help="trials of this kind: kills, disks or writes")
    made.add_argument("--sample", type=int, help="only so many trials, chosen by the seed")
    options = made.parse_args(given)
    ready_to_fork()
    failing.forget()
    stop_politely()
    if options.fresh and options.again is None:
        shutil.rmtree(options.folder, ignore_errors=True)
    for name, why in (("full disks", crash_disks.why_not()), ("the n-th write", failing.why_not())):
        if why is not None:
            print(f"left out: {name}: {why}")
    all_trials = plan(options.seed, options.inputs, options.rooms, options.every)
    trials = [trial for trial in all_trials if options.only in (None, trial["kind"])]
    if options.sample is not None:
        trials = sampled(trials, options.sample, options.seed)
    campaign = Crashes(options.seed, options.folder.resolve())
    try:
        if options.again is not None:
            planned = json.loads(options.again.read_text())
            campaign.prepare([planned])
            result = campaign.lead(planned, campaign.arenas[0])
            print(json.dumps(result, indent=1))
            return 1 if result["problems"] else 0
        campaign.prepare(trials)
        campaign.run(trials, options.seconds, lambda line: print(line, flush=True))
        return concluded(campaign.tally, campaign.folder, options.results, campaign.tally.next >= len(trials))
    finally:
        campaign.close()


if __name__ == "__main__":
    conduct(main)
