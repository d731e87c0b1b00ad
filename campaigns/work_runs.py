"""Training, from nothing and resumed, and evaluation of what was trained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .case import copy
from .workloads import FromNothing, Tell, beside, command, digest, json_in, tensors_in

SHORT = (
    "--updates",
    "3",
    "--checkpoint-every",
    "1",
    "--validate-every",
    "1",
    "--log-every",
    "1",
    "--validation-episodes",
    "2",
)
LONG = (
    "--updates",
    "24",
    "--checkpoint-every",
    "3",
    "--validate-every",
    "4",
    "--log-every",
    "1",
    "--validation-episodes",
    "4",
)
SMALL = ("--filters", "8", "--batch-classes", "2", "--batch-size", "6", "--device", "cpu")
PASSES = ("date", "commit", "hardware", "torch")  # what differs between two evaluations


def data_beside(place: Path) -> str:
    return next(path.parent.name for path in sorted((place.parent / "cache").glob("*/manifest.json")))


class Training(FromNothing):
    """One run; stopped in whatever way, the same command goes on with it and ends with the same weights."""

    def __init__(self, settings: Sequence[str], name: str) -> None:
        self.settings, self.name, self.room = settings, name, 150_000

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        root = beside(place, "cache")
        command(
            "train", "--data", data_beside(place), "--root", root, "--run", str(place), "--resume", *SMALL, *self.settings
        )
        tell("trained")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        self.act(place, (), lambda _: None)
        problems = []
        for name in ("model.safetensors", "state.safetensors"):
            if tensors_in(place / name) != tensors_in(reference / name):
                problems.append(f"{name} has other values than undisturbed")
        one, other = (lines_of(folder / "metrics.jsonl") for folder in (place, reference))
        if one != other:
            problems.append(f"metrics.jsonl has {len(one)} lines instead of {len(other)}, or others")
        if left := sorted(
            file.name for file in place.iterdir() if file.name not in {other.name for other in reference.iterdir()}
        ):
            problems.append(f"left behind: {left}")
        return problems


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Apart from times."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


class Evaluation:
    """`rankshot evaluate` of a run that was copied there; the run stays as it is."""

    name, room, is_endless = "evaluation", 400_000, False
    unchanged = ("model.safetensors", "config.json", "metrics.jsonl")

    def ready(self, place: Path) -> None:
        copy(place.parent / "run", place)

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        command("evaluate", str(place), "--episodes", "20", "--root", beside(place, "cache"))
        tell("evaluated")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        problems = []
        if "evaluated" in acknowledged and json_in(place / "evaluation.json", PASSES) != json_in(
            reference / "evaluation.json", PASSES
        ):
            problems.append("what was measured is lost")
        self.act(place, (), lambda _: None)
        if json_in(place / "evaluation.json", PASSES) != json_in(reference / "evaluation.json", PASSES):
            problems.append("another result than undisturbed")
        problems += [f"{name} has changed" for name in self.unchanged if digest(place / name) != digest(reference / name)]
        return problems
