"""Hostile inputs of every kind: `python -m campaigns.fuzz`. Seeded, bounded in time, and it goes on where it was stopped.

Input number n depends on the seed and on n alone. Writes results/campaigns/fuzz.json; every input that failed is kept below
runs/campaigns/fuzz/failed, and `--again FOLDER` tries one of them once more, as does a campaign that goes on. The exit code
is 1 if anything was found.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from .arena import Arena, room
from .case import CASE, Case, Kind, copy
from .conduct import MAKING, concluded, goods_in, parser
from .forks import Child, Ended, conduct, ready_to_fork
from .fuzz_archives import Archives
from .fuzz_calls import Calls, call
from .fuzz_galleries import Galleries
from .fuzz_images import Images
from .fuzz_json import Json
from .fuzz_options import Options
from .fuzz_tensors import Tensors
from .judging import MEMORY, SECONDS, Failure, Good, judged
from .progress import Tally
from .trying import attempt, events_of, outcome_of, said_by
from .turns import in_turns, stop_politely

INPUTS, WORKERS = 10_000, 2
CHECKED = 1000  # inputs, from which on all good ones are tried first
KEPT = 3  # inputs of one cause
Call = Callable[[int], str]


class Campaign:
    """Kinds of inputs, tried by several children at a time.

    kinds    those to choose from, by their shares
    folder   where the state and what has failed is kept
    call     what a case with a `call` does
    """

    def __init__(self, kinds: Sequence[Kind], seed: int, folder: Path, call: Call | None = None) -> None:
        self.kinds, self.seed, self.folder, self.call = kinds, seed, folder, call
        self.room = room()
        self.goods = self.room
        self.arenas = [Arena(self.room / f"arena-{number}") for number in range(WORKERS)]
        self.spare = Arena(self.room / "spare")
        self.least = 0  # bytes that any command takes
        self.good: dict[tuple[str, str], Good] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self.tally = Tally.read(folder, seed)
        self.twice: set[int] = set()

    def close(self) -> None:
        shutil.rmtree(self.room, ignore_errors=True)

    def prepare(self) -> None:
        """The good folders, and what good inputs take."""
        self.goods = goods_in(self.room / "goods", self.folder / "goods.log")
        self.least = self._good(self.kinds[0], self.kinds[0].families[0]).peak

    def check_goods(self) -> None:
        """Every good input works: else the campaign would try nothing."""
        for kind in self.kinds:
            for family in kind.families:
                self.good_of(kind.name, family)

    def good_of(self, kind: str, family: str) -> Good:
        if (kind, family) not in self.good:
            self.good[kind, family] = self._good(
                next(candidate for candidate in self.kinds if candidate.name == kind), family
            )
        return self.good[kind, family]

    def _good(self, kind: Kind, family: str) -> Good:
        arena = self.spare
        arena.clear()

        def act() -> None:
            case = kind.good(family, arena, self.goods)
            case.write(arena.notes)
            attempt(case, arena, self.call)

        ended = Child(act, MAKING, 2**34).start().wait()
        outcome = outcome_of(arena)
        if outcome is None or any(step["raised"] or step["code"] != 0 for step in outcome["steps"]):
            raise RuntimeError(f"a good input fails: {kind.name} {family}: {json.dumps(outcome, indent=1)}")
        return Good(ended.peak, outcome["steps"][-1]["out"])

    def make(self, number: int, arena: Arena) -> Case:
        chance = random.Random(f"{self.seed}/{number}")
        kind = chance.choices(self.kinds, [kind.share for kind in self.kinds])[0]
        return kind.make(chance, arena, self.goods)

    def start(self, number: int, arena: Arena) -> Child:
        arena.clear()

        def act() -> None:
            case = self.make(number, arena)
            case.write(arena.notes)
            attempt(case, arena, self.call)

        return Child(act, SECONDS, self._most_memory(), arena.notes / CASE).start()

    def _most_memory(self) -> int:
        """At which a child is ended: some more than counts."""
        return 2 * self.least + 2 * MEMORY

    def run(self, numbers: Iterable[int], seconds: float, say: Callable[[str], None]) -> None:
        began, before = time.monotonic(), self.tally.seconds

        def tick() -> None:
            self.tally.seconds = before + time.monotonic() - began
            self.tally.write(self.folder)
            say(f"{sum(self.tally.tried.values()):,} inputs, {self.tally.seconds:.0f} s, {self.tally.failures} failures")

        failed = self.tally.to_try_again()
        waiting = chain(failed, (number for number in numbers if not self.tally.is_done(number)))
        start = lambda number, place: self.start(number, self.arenas[place])  # noqa: E731
        in_turns(WORKERS, waiting, seconds, start, lambda *ended: self._done(*ended), tick)
        tick()

    def _done(self, number: int, place: int, ended: Ended) -> Child | None:
        arena = self.arenas[place]
        if not (arena.notes / CASE).exists():
            raise RuntimeError(f"input {number} of seed {self.seed} cannot be made: the campaign itself is at fault")
        case, failures = self._judged(arena, ended)
        if any(failure.kind == "hang" for failure in failures) and number not in self.twice:
            self.twice.add(number)  # others may have had the processor: once more
            return self.start(number, arena)
        self.tally.done(number, case.kind)
        for failure in failures:
            if self.tally.add(failure.kind, failure.cause, number, failure.detail) <= KEPT:
                self._keep(number, case, arena, failures)
        return None

    def _judged(self, arena: Arena, ended: Ended) -> tuple[Case, list[Failure]]:
        case, _ = Case.read(arena.notes)
        is_large = ended.peak > self.least + MEMORY or ended.peak - self.least > self.tally.peak
        good = self.good_of(case.kind, case.family) if case.probe is not None or is_large else None
        if good is not None and not case.asks:
            self.tally.peak = max(self.tally.peak, ended.peak - good.peak)
        return case, judged(
            case, ended, outcome_of(arena), events_of(arena), arena.touched(), good, said_by(arena)["stack"]
        )

    def _keep(self, number: int, case: Case, arena: Arena, failures: list[Failure]) -> None:
        """What is needed to try it again: by its number and seed, or from its files where the campaign has changed."""
        folder = self.folder / "failed" / f"{number:06}-{case.kind}"
        if folder.exists():
            return
        folder.mkdir(parents=True)
        details: dict[str, Any] = {
            "failures": [vars(failure) for failure in failures],
            "outcome": outcome_of(arena) or said_by(arena),
        }
        case.write(folder, number=number, seed=self.seed, arena=str(arena.folder), **details)

        def again() -> None:  # made anew, since trying it may have changed it
            arena.clear()
            self.make(number, arena)
            copy(arena.work, folder / "work")

        Child(again, MAKING, 2**34).start().wait()


def try_again(campaign: Campaign, folder: Path) -> list[Failure]:
    """An input that was kept, from its files, where they lay."""
    case, more = Case.read(folder)
    arena = Arena(Path(more["arena"]))
    try:
        copy(folder / "work", arena.work)

        def act() -> None:
            attempt(case, arena, campaign.call)

        ended = Child(act, SECONDS, campaign._most_memory()).start().wait()
        good, outcome = campaign.good_of(case.kind, case.family), outcome_of(arena)
        print(json.dumps(outcome or said_by(arena), indent=1))
        return judged(case, ended, outcome, events_of(arena), arena.touched(), good, said_by(arena)["stack"])
    finally:
        shutil.rmtree(arena.folder.parent, ignore_errors=True)


def all_kinds() -> list[Kind]:
    return [Images(), Archives(), Json(), Tensors(), Galleries(), Options(), Calls()]


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("fuzz", __doc__, INPUTS, "inputs")
    made.add_argument("--kinds", nargs="*", help="only these")
    options = made.parse_args(arguments)
    ready_to_fork()
    stop_politely()
    kinds = [kind for kind in all_kinds() if not options.kinds or kind.name in options.kinds]
    if options.fresh and options.again is None:
        shutil.rmtree(options.folder, ignore_errors=True)
    campaign = Campaign(kinds, options.seed, options.folder.resolve(), call)
    try:
        campaign.prepare()
        if options.again is not None:
            failures = try_again(campaign, options.again)
            print("\n".join(f"{failure.kind}: {failure.cause}\n{failure.detail}" for failure in failures) or "all is well")
            return 1 if failures else 0
        if options.inputs >= CHECKED:
            campaign.check_goods()
        campaign.run(range(options.inputs), options.seconds, lambda line: print(line, flush=True))
        return concluded(campaign.tally, campaign.folder, options.results, campaign.tally.next >= options.inputs)
    finally:
        campaign.close()


if __name__ == "__main__":
    conduct(main)
