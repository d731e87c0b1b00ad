"""JSON files of runs, classifiers, galleries and prepared data, with other values in them than were written."""

from __future__ import annotations

import json
import random
from pathlib import Path

from .arena import Arena
from .case import Case, bring
from .mutations import changed_bytes, changed_json, other_file

ASK = "pictures/c1/0.png"
COMMANDS: dict[str, list[list[str]]] = {
    "evaluate": [["evaluate", "run", "--episodes", "2"]],
    "untrained": [["evaluate", "begun", "--episodes", "2", "--untrained"]],
    "resume": [["train", "--run", "run", "--resume", "--updates", "5", "--data", "{data}"]],
    "config": [["train", "--config", "run/config.json", "--run", "new", "--updates", "1"]],
    "init": [["train", "--data", "pictures", "--init", "run", "--run", "new", "--updates", "1", "--filters", "8"]],
    "classify": [["classify", ASK, "--support", "pictures", "--model", "run", "--reject", "0.1", "--format", "json"]],
    "one shot": [["classify", ASK, "--support", "shots", "--model", "run", "--reject", "0.1", "--format", "json"]],
    "kept": [["classify", ASK, "--support", "classifier", "--format", "json"]],
    "export": [["export", "run", "out"]],
    "info": [["gallery", "info", "gallery", "--verify"]],
    "search": [["search", ASK, "--gallery", "gallery", "--json", "--where", "colour=red"]],
    "add": [["gallery", "add", "gallery", "shots"]],
    "delete": [["gallery", "delete", "gallery", "pictures/c1/0.png"]],
    "rescue": [["gallery", "rescue", "gallery", "rescued"]],
    "verify": [["data", "verify"]],
    "list": [["data", "list"]],
    "show": [["data", "show", "{data}", "-o", "sheet.png"]],
    "data": [["train", "--data", "{data}", "--run", "new", "--updates", "1", "--filters", "8"]],
}
OF_A_RUN = ("evaluate", "resume", "classify", "export", "search", "add")
# file -> what reads it; {data} is the folder of the prepared data
FILES: dict[str, tuple[str, ...]] = {
    "run/config.json": (*OF_A_RUN, "config", "init"),
    "run/classes.json": ("evaluate", "resume", "init", "export"),
    "run/metrics.jsonl": ("evaluate", "resume"),
    "run/evaluation.json": ("evaluate", "export", "classify", "resume"),
    "run/one_shot.json": ("one shot", "classify", "export", "search"),
    "begun/config.json": ("untrained",),
    "begun/classes.json": ("untrained",),
    "classifier/classifier.json": ("kept",),
    "classifier/network/config.json": ("kept",),
    "classifier/network/one_shot.json": ("kept",),
    "cache/{data}/manifest.json": ("verify", "list", "show", "data", "evaluate"),
    "gallery/*.json": ("info", "search", "add", "delete", "rescue"),
}


def settle(arena: Arena, goods: Path) -> str:
    """All good folders; returns the name of the prepared data."""
    bring(goods, arena, "pictures", "cache", "run", "begun", "gallery", "classifier")
    for label in ("cat", "dog"):
        (arena.work / "shots" / label).mkdir(parents=True)
        number = 1 if label == "cat" else 2
        (arena.work / "shots" / label / "0.png").write_bytes((goods / f"pictures/c{number}/3.png").read_bytes())
    return next(path.parent.name for path in sorted((goods / "cache").glob("*/manifest.json")))


def steps_of(family: str, name: str) -> list[list[str]]:
    return [[argument.replace("{data}", name) for argument in step] for step in COMMANDS[family]]


class Json:
    """One file changed, and a command that reads it."""

    name, share = "json", 22
    families = tuple(COMMANDS)

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        data = settle(arena, goods)
        pattern = chance.choices(list(FILES), [3 if "config" in name else 1 for name in FILES])[0]
        family = chance.choice(FILES[pattern])
        paths = sorted(arena.work.glob(pattern.replace("{data}", data)))
        if not paths:  # a gallery may have none
            paths, family = [arena.work / "run/config.json"], chance.choice(OF_A_RUN)
        path = chance.choice(paths)
        description = self._change(path, chance, arena)
        return Case(
            self.name, f"{path.relative_to(arena.work)}: {description}; {family}", steps_of(family, data), None, family
        )

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        return Case(self.name, "good", steps_of(family, settle(arena, goods)))

    def _change(self, path: Path, chance: random.Random, arena: Arena) -> str:
        how = chance.random()
        if how < 0.08:
            return other_file(path, chance, arena)
        if how < 0.16:
            content, description = changed_bytes(path.read_bytes(), chance)
            path.write_bytes(content)
            return description
        if path.suffix == ".jsonl":
            lines = path.read_text().splitlines()
            index = chance.randrange(len(lines))
            lines[index], description = changed_json(json.loads(lines[index]), chance, arena)
            text = "\n".join(lines) + "\n"
        else:
            text, description = changed_json(json.loads(path.read_text()), chance, arena)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return description
