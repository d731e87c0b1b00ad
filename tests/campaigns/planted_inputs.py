"""A fuzz campaign whose inputs are faults: `python planted_inputs.py FOLDER` prints what it has found, as JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from campaigns import fuzz
from campaigns.case import Case
from rankshot.cli import main as cli

FAULTS = "fine raises tells writes starts sleeps takes_memory answers_otherwise dies says_nothing escapes".split()


def command(arguments):
    """In the place of the command line; it works in `arena/work`."""
    fault = arguments[0]
    if fault == "raises":
        raise RuntimeError("planted")
    if fault == "tells":
        sys.stderr.write(Path("../canary/secret.txt").read_text())
    if fault == "writes":
        Path("../home/.bashrc").write_text("planted")
    if fault == "starts":
        subprocess.run(["gs", "--version"], check=False)
    if fault == "sleeps":
        time.sleep(60)
    if fault == "takes_memory":
        kept = bytes([1]) * (2**30 + 2**28)
        return len(kept) % 2
    if fault == "dies":
        os.kill(os.getpid(), signal.SIGBUS)
    if fault == "says_nothing":
        return 1
    if fault == "escapes":
        print("\x1b[31m")
    print("answer 2" if fault == "answers_otherwise" else "answer 1")
    return 0


class Planted:
    name, share, families = "planted", 1, ("a command",)

    def make(self, chance, arena, goods):
        number = int((arena.folder.parent / f"number-{arena.folder.name}").read_text())
        (arena.work / "input").write_text(FAULTS[number])
        return Case("planted", FAULTS[number], [[FAULTS[number]]], None, "a command", "answer")

    def good(self, family, arena, goods):
        return Case("planted", "good", [["fine"]])


class Numbered(fuzz.Campaign):
    def start(self, number, arena):
        (self.room / f"number-{arena.folder.name}").write_text(str(number))
        return super().start(number, arena)

    def make(self, number, arena):
        (self.room / f"number-{arena.folder.name}").write_text(str(number))
        return super().make(number, arena)


def begun(folder):
    campaign = Numbered([Planted()], 0, folder)
    campaign.least = campaign._good(campaign.kinds[0], "a command").peak
    return campaign


if __name__ == "__main__":
    cli.main = command
    fuzz.SECONDS = 6.0
    place = Path(sys.argv[1])
    campaign = begun(place)
    campaign.run(range(4), 60.0, lambda line: None)  # stopped after four of them
    campaign.close()
    campaign = begun(place)
    came_to = campaign.tally.next
    campaign.run(range(len(FAULTS)), 60.0, lambda line: None)
    kept = sorted(each.name for each in (place / "failed").iterdir())
    again = [each.kind for each in fuzz.try_again(campaign, place / "failed" / "000001-planted")]
    campaign.close()
    found = {cause: each["inputs"] for cause, each in campaign.tally.found.items()}
    told = {"came_to": came_to, "tried": sum(campaign.tally.tried.values()), "found": found, "kept": kept, "again": again}
    print("\n" + json.dumps(told), flush=True)
    os._exit(0)
