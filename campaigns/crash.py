"""Crashes of every kind: `python -m campaigns.crash`. Processes killed, disks full, and the n-th write failing for every n.

Seeded, bounded in time, and it goes on where it was stopped. Writes results/campaigns/crash.json; what failed is told below
runs/campaigns/crash/failed, and `--again FILE` tries it once more. Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import crash_disks, failing
from .arena import Arena, room
from .crash_disks import small_disk, with_little_room
from .crash_kills import killed
from .crash_writes import MODES, failing_writes
from .disturbing import Trial
from .forks import Child, leave, ready_to_fork
from .progress import STATE, Tally, summary
from .turns import in_turns, stop_politely
from .work_folders import Exporting, Preparing, Saving
from .work_gallery import Pictures, Vectors
from .work_runs import LONG, SHORT, Evaluation, Training
from .workloads import Workload

ROOT = Path(__file__).parent.parent
FOLDER, RESULTS = Path("runs/campaigns/crash"), ROOT / "results" / "campaigns" / "crash.json"
KILLS, ROOMS, WORKERS = 300, 12, 2
A_TRIAL = 1800.0  # seconds that a trial may take
UNENDING = 0.4  # seconds, in which work without end is killed

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


def plan(seed: int, kills: int, rooms: int, step: int) -> list[dict[str, Any]]:
    """All trials, in an order that tries a little of everything early."""
    found: list[dict[str, Any]] = []
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


class Crashes:
    """The trials, two at a time; each is led by a process of its own."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.room = room()
        self.arenas = [Arena(self.room / f"arena-{number}") for number in range(WORKERS)]
        self.goods = self.room / "goods" / "work"
        self.seconds: dict[str, float] = {}
        self.tally = Tally.read(folder, seed)

    def close(self) -> None:
        shutil.rmtree(self.room, ignore_errors=True)

    def prepare(self) -> None:
        """Good folders, and everything once undisturbed."""
        from .goods import make_goods

        arena = Arena(self.goods.parent)

        def make() -> None:
            with (self.folder / "goods.log").open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            make_goods(arena.work, arena.environment())

        if Child(make, 120, 2**34).start().wait().code:
            raise RuntimeError(f"the good folders cannot be made: {self.folder / 'goods.log'} tells why")
        for workload in {each.name: each for each in (*(w for w, _ in KILLED), *WRITTEN)}.values():
            if workload.name in ("gallery of vectors", "gallery of vectors faiss:"):
                self.seconds[workload.name] = UNENDING
                continue
            trial = Trial(workload, self.arenas[0], self.room / "references" / workload.name.replace(" ", "-"))
            trial.folder.mkdir(parents=True)
            outcome = trial.settle(self.goods).outcome(trial.start().wait())
            self.seconds[workload.name] = outcome.get("seconds", 0.0)
            trial.learn()
            problems = [] if "done" in outcome else [f"{outcome}"]
            shutil.copytree(trial.place, trial.folder / "reference")
            problems += trial.problems(trial.folder / "reference")
            if problems:
                raise RuntimeError(f"undisturbed, {workload.name} is wrong: {problems}")

    def reference(self, workload: Workload) -> Path:
        return self.room / "references" / workload.name.replace(" ", "-") / "reference"

    def start(self, told: dict[str, Any], arena: Arena) -> Child:
        arena.clear()

        def act() -> None:
            (arena.notes / "result").write_text(json.dumps(self.lead(told, arena)))

        return Child(act, A_TRIAL, 2**34).start()

    def lead(self, told: dict[str, Any], arena: Arena) -> dict[str, Any]:
        """One trial: how many disturbances there were, of what, and what was wrong."""
        workload = KILLED[told["workload"]][0] if told["kind"] == "kills" else WRITTEN[told["workload"]]
        reference = self.reference(workload)
        trial = Trial(workload, arena, arena.work / "all")
        if told["kind"] == "disks":
            with small_disk(trial.folder):
                was_full, problems = with_little_room(trial.settle(self.goods), told["room"], reference)
            return {
                "count": int(was_full),
                "name": workload.name,
                "problems": [f"{told['room']} bytes of room: {each}" for each in problems],
            }
        trial.settle(self.goods)
        if told["kind"] == "kills":
            count, problems = killed(
                trial, told["times"], self.seconds[workload.name], random.Random(told["seed"]), reference
            )
            return {"count": count, "name": workload.name, "problems": problems}
        found, count, mode = [], 0, MODES[told["mode"]]
        for number, problems in failing_writes(trial, mode, reference, told["step"]):
            count += 1
            found += [f"{mode.name}, write {number}: {each}" for each in problems]
        return {"count": count, "name": workload.name, "problems": found}

    def run(self, trials: Sequence[dict[str, Any]], seconds: float, say: Callable[[str], None]) -> None:
        began, before = time.monotonic(), self.tally.seconds

        def done(number: int, place: int, ended: Any) -> None:
            path = self.arenas[place].notes / "result"
            told = trials[number]
            if not path.exists():
                raise RuntimeError(f"trial {number} {told} came to nothing ({ended}): the campaign itself is at fault")
            result = json.loads(path.read_text())
            self.tally.done(number, f"{told['kind']}: {result['name']}", result["count"])
            for each in result["problems"]:
                self.tally.add(told["kind"], f"{result['name']}: {_short(each)}", number, each)
            if result["problems"]:
                (self.folder / "failed").mkdir(exist_ok=True)
                (self.folder / "failed" / f"{number:05}.json").write_text(json.dumps({**told, **result}, indent=1))

        def tick() -> None:
            self.tally.seconds = before + time.monotonic() - began
            self.tally.write(self.folder)
            say(
                f"{self.tally.next} of {len(trials)} trials, {sum(self.tally.tried.values()):,} disturbances, "
                f"{self.tally.failures} failures"
            )

        numbers = (number for number in range(len(trials)) if not self.tally.is_done(number))
        in_turns(
            WORKERS, numbers, seconds, lambda number, place: self.start(trials[number], self.arenas[place]), done, tick
        )
        tick()


def _short(problem: str) -> str:
    """Without numbers, so that what is alike is counted together."""
    from re import sub

    line = problem.splitlines()[0] if problem.strip() else "?"
    last = problem.strip().splitlines()[-1] if "\n" in problem.strip() else ""
    return sub(r"\d+", "N", f"{line[:120]} {last[:150]}".split("/work/")[0]).strip()


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    failing.begin_anew_with_it("campaigns.crash", given)
    parser = argparse.ArgumentParser(prog="python -m campaigns.crash", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=KILLS, help="how many kills")
    parser.add_argument("--rooms", type=int, default=ROOMS, help="how many sizes of a full disk, for each kind of work")
    parser.add_argument("--every", type=int, default=1, help="only every so-manieth n of the n-th write")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after so many")
    parser.add_argument("--only", help="trials of this kind: kills, disks or writes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the state and of what failed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="json to write")
    parser.add_argument("--fresh", action="store_true", help="forget where it was stopped")
    parser.add_argument("--again", type=Path, help="a trial that failed, once more")
    options = parser.parse_args(given)
    ready_to_fork()
    failing.forget()
    stop_politely()
    if options.fresh:
        shutil.rmtree(options.folder, ignore_errors=True)
    for name, why in (("full disks", crash_disks.why_not()), ("the n-th write", failing.why_not())):
        if why is not None:
            print(f"left out: {name}: {why}")
    campaign = Crashes(options.seed, options.folder.resolve())
    try:
        campaign.prepare()
        if options.again is not None:
            result = campaign.lead(json.loads(options.again.read_text()), campaign.arenas[0])
            print(json.dumps(result, indent=1))
            return 1 if result["problems"] else 0
        trials = [
            each
            for each in plan(options.seed, options.inputs, options.rooms, options.every)
            if options.only in (None, each["kind"])
        ]
        campaign.run(trials, options.seconds, lambda line: print(line, flush=True))
        tally, is_whole = campaign.tally, campaign.tally.next >= len(trials)
        print(summary(tally) + ("" if is_whole else "\nnot all yet: the same command goes on"))
        from benchmarks.measure import circumstances

        options.results.parent.mkdir(parents=True, exist_ok=True)
        content = {**circumstances(options.seed), **tally.told(), "whole": is_whole}
        options.results.write_text(json.dumps(content, indent=1) + "\n")
        if is_whole:
            (campaign.folder / STATE).unlink(missing_ok=True)
        return 1 if tally.found else 0
    finally:
        campaign.close()


if __name__ == "__main__":
    leave(main())
