"""How far a campaign has come, on the disk: one that was stopped goes on, and what it found is kept."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankshot.files import write_whole

STATE = "state.json"


@dataclass
class Tally:
    """What was tried, and what was found.

    next     every input before this one is done
    beyond   those after it that are done too
    tried    how many, by kind
    found    cause -> how often, and by which inputs
    """

    seed: int
    next: int = 0
    beyond: set[int] = field(default_factory=set)
    tried: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    peak: int = 0  # bytes above the good input, at most
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def is_done(self, number: int) -> bool:
        return number < self.next or number in self.beyond

    def done(self, number: int, kind: str, times: int = 1) -> None:
        if self.is_done(number):  # tried again
            return
        self.tried[kind] += times
        self.beyond.add(number)
        while self.next in self.beyond:
            self.beyond.remove(self.next)
            self.next += 1

    def add(self, kind: str, cause: str, number: int, detail: str) -> int:
        """How often this was seen now."""
        entry = self.found.setdefault(f"{kind}: {cause}", {"times": 0, "inputs": [], "detail": detail})
        entry["times"] += 1
        entry["inputs"].append(number)
        return int(entry["times"])

    def to_try_again(self) -> list[int]:
        """Inputs that have failed: whoever goes on may have mended why. What was found of them is forgotten."""
        numbers = sorted({number for entry in self.found.values() for number in entry["inputs"]})
        self.found.clear()
        return numbers

    @property
    def failures(self) -> int:
        return sum(entry["times"] for entry in self.found.values())

    def write(self, folder: Path) -> None:
        content = {**self.as_json(), "next": self.next, "beyond": sorted(self.beyond)}
        write_whole(folder / STATE, json.dumps(content, indent=1) + "\n")

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "inputs": sum(self.tried.values()),
            "tried": dict(sorted(self.tried.items())),
            "seconds": round(self.seconds, 1),
            "peak_above_good": self.peak,
            "failures": self.failures,
            "found": self.found,
        }

    @classmethod
    def read(cls, folder: Path, seed: int) -> Tally:
        """Where this campaign stands; at its beginning, unless it is there."""
        try:
            content = json.loads((folder / STATE).read_text())
        except (OSError, ValueError):
            return cls(seed)
        if content["seed"] != seed:
            return cls(seed)
        return cls(
            seed,
            content["next"],
            set(content["beyond"]),
            Counter(content["tried"]),
            content["seconds"],
            content["peak_above_good"],
            content["found"],
        )


def summary(tally: Tally) -> str:
    """For a person."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.tried.items()))
    lines = [f"{sum(tally.tried.values()):,} in {tally.seconds:.0f} s: {kinds}"]
    for cause, entry in sorted(tally.found.items(), key=lambda item: -item[1]["times"]):
        lines.append(f"  {entry['times']:5} x {cause}   (number {', '.join(map(str, entry['inputs'][:3]))})")
    lines.append(f"{tally.failures} failures" if tally.found else "nothing was found")
    return "\n".join(lines)
