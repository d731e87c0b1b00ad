"""What campaigns have in common: their options, the good folders, and how they end."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from .arena import Arena
from .forks import Child
from .goods import make_goods
from .progress import STATE, Tally, summary

ROOT = Path(__file__).parent.parent
MAKING, MEMORY = 120.0, 2**34  # seconds and bytes, for the good folders


def parser(name: str, about: str | None, inputs: int, what: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"python -m campaigns.{name}", description=(about or "").split("\n")[0])
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--inputs", type=int, default=inputs, help=f"how many {what}")
    made.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so many")
    folder = Path("runs/campaigns") / name
    made.add_argument("--folder", type=Path, default=folder, help="of the state and of what failed")
    made.add_argument("--results", type=Path, default=ROOT / f"results/campaigns/{name}.json", help="json to write")
    made.add_argument("--fresh", action="store_true", help="forget where it was stopped")
    made.add_argument("--again", type=Path, help="something that failed, once more")
    return made


def goods_in(folder: Path, log: Path) -> Path:
    """Good folders, made in a child: it trains, and whoever forks must not have done so."""
    arena = Arena(folder)

    def make() -> None:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        make_goods(arena.work, arena.environment())

    if Child(make, MAKING, MEMORY).start().wait().code:
        raise RuntimeError(f"the good folders cannot be made: {log} tells why")
    return arena.work


def concluded(tally: Tally, folder: Path, results: Path, is_whole: bool) -> int:
    """Tell a person, write the json, and say whether anything was found."""
    from rankshot.hardware import circumstances

    print(summary(tally) + ("" if is_whole else "\nnot all yet: the same command goes on"))
    results.parent.mkdir(parents=True, exist_ok=True)
    content = {**circumstances(tally.seed), **tally.as_json(), "whole": is_whole}
    results.write_text(json.dumps(content, indent=1) + "\n")
    if is_whole:
        (folder / STATE).unlink(missing_ok=True)
    return 1 if tally.found else 0
