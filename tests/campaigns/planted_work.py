"""Work that is disturbed, some of it careless: `python planted_work.py FOLDER` prints what was found of each, as JSON."""

import json
import os
import random
import sys
import time
from pathlib import Path

from campaigns import failing
from campaigns.arena import Arena
from campaigns.crash_kills import killed
from campaigns.crash_writes import MODES, failing_writes
from campaigns.disturbing import Trial
from campaigns.workloads import FromNothing, errors_as_seen

LINES = 4


class Lines(FromNothing):
    """Keeps numbered lines in a file, carefully."""

    name, room, modes = "lines", 0, MODES

    def act(self, place, before, tell):
        with errors_as_seen():
            place.mkdir(exist_ok=True)
            with (place / "lines").open("ab", buffering=0) as file:
                for number in range(len(before), len(before) + LINES):
                    self.keep(file, number, tell)

    def keep(self, file, number, tell):
        size = os.fstat(file.fileno()).st_size
        rest = b"line %d\n" % number
        try:
            while rest:
                rest = rest[os.write(file.fileno(), rest) :]
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), size)
            raise
        tell(f"kept {number}")
        time.sleep(0.005)

    def check(self, place, told, reference):
        there = (place / "lines").read_text().splitlines() if (place / "lines").exists() else []
        lost = [each for each in told if each.replace("kept", "line") not in there]
        return [f"lost: {each}" for each in lost]


class Forgetful(Lines):
    """Acknowledges first."""

    modes = ()

    def keep(self, file, number, tell):
        tell(f"kept {number}")
        time.sleep(0.02)
        super().keep(file, number, lambda line: None)


class Careless(Lines):
    """Never looks how much was written."""

    modes = tuple(each for each in MODES if each.name == "half a write, once")

    def keep(self, file, number, tell):
        os.write(file.fileno(), b"line %d\n" % number)
        tell(f"kept {number}")


class Rude(Lines):
    """Has another error than a user should see."""

    modes = MODES[:1]

    def keep(self, file, number, tell):
        try:
            super().keep(file, number, tell)
        except OSError:
            raise RuntimeError("what is this?") from None


if __name__ == "__main__":
    failing.begin_anew_with_it(sys.argv)
    found = {}
    for work in (Lines(), Forgetful(), Careless(), Rude()):
        arena = Arena(Path(sys.argv[1]) / type(work).__name__)
        goods = arena.folder / "goods"
        for name in ("pictures", "run", "cache", "classifier"):
            (goods / name).mkdir(parents=True)
        trial = Trial(work, arena, arena.work / "all").settle(goods)
        kills = killed(trial, 3, 0.05 if isinstance(work, Forgetful) else 0.01, random.Random(0), goods)
        writes = {}
        for mode in work.modes if failing.TOLD in os.environ else ():
            trial.fresh()
            writes[mode.name] = [(number, problems) for number, problems in failing_writes(trial, mode, goods)]
        found[type(work).__name__] = {"kills": kills, "writes": writes}
    failing.forget()
    print("\n" + json.dumps(found), flush=True)
    os._exit(0)
