"""Option values: numbers and texts of every option of every command, and every path that can be named."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from .arena import Arena
from .case import Case
from .fuzz_json import settle
from .goods import OPTIONS
from .mutations import NUMBERS, ODD_TEXTS

BASE: dict[str, list[str]] = {
    "data prepare": ["data", "prepare", "pictures", "--size", "8"],
    "data list": ["data", "list"],
    "data verify": ["data", "verify"],
    "data show": ["data", "show", "{data}", "-o", "sheet.png"],
    "train": ["train", "--data", "{data}", "--run", "new", "--updates", "2", "--filters", "8", "--validation-episodes", "2",
              "--batch-classes", "2", "--batch-size", "6", "--log-every", "1", "--validate-every", "1"],
    "train again": ["train", "--run", "run", "--resume", "--updates", "5"],
    "evaluate": ["evaluate", "run", "--episodes", "2"],
    "classify": ["classify", "pictures/c1/0.png", "--support", "pictures", "--model", "run"],
    "gallery add": ["gallery", "add", "g", "pictures/c1", "--model", "run"],
    "gallery info": ["gallery", "info", "gallery"],
    "gallery list": ["gallery", "list", "gallery"],
    "gallery duplicates": ["gallery", "duplicates", "gallery"],
    "gallery rebuild": ["gallery", "rebuild", "gallery", "--model", "run"],
    "gallery delete": ["gallery", "delete", "gallery", "pictures/c1/0.png"],
    "gallery rescue": ["gallery", "rescue", "gallery", "new"],
    "search": ["search", "pictures/c1/0.png", "--gallery", "gallery"],
    "export": ["export", "run", "new"],
    "reproduce": ["reproduce", "omniglot", "--list", "--results", "results"],
}  # fmt: skip
LENGTH = {
    "--updates",
    "--episodes",
    "--validation-episodes",
    "--seconds",
    "--jobs",
    "--filters",
}  # what one asks for takes its time
SHORT = ("0", "-1", "1", "2", "3", "x", "", "1.5", "nan", "1e3", "-9223372036854775809", "0x2", "٣", "2_0")
NEVER = {"--load", "--help"}  # code that is to be run, by whoever names it
# Without what no shell can give, and what leads outside: who names a place on the command line wants it there.
LEFT_OUT = ("\ud800", "glyphs", "--help", "/", "..", "../../canary/x")
TEXTS = tuple(text for text in ODD_TEXTS if "\x00" not in text and text not in LEFT_OUT)
WORDS = (
    "ap", "ndcg", "precision@0", "precision@5", "precision@999999999999999999999", "precision@-1", "precision@x",
    "map-ssvm", "siamese", "maml",
    "prototypical", "nca", "trainval", "test", "val", "batch", "running", "cosine", "step", "flip", "turn", "cpu",
    "cuda", "bfloat16", "=", "a=b", "sgd", "adamw", "conv4",
    "tensorboard", "colour=red", "json", "csv", "nearest", "prototype", "None", "True",
    "omniglot",
)  # fmt: skip
PATHS = (
    "missing", "pictures", "pictures/c1/0.png", "run", "run/config.json", "run/model.safetensors", "gallery",
    "classifier", "begun", ".", "/dev/null",
    "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "fifo", "loop", "new/x/y", "sheet.jpg", "sheet.xyz",
    "out.onnx", "no.db", "x" * 300,
    "http://127.0.0.1:9/x", "faiss:gallery", "faiss:f", "run/../run", "table.csv",
)  # fmt: skip


class Options:
    """One command, with a few values that nobody would give."""

    name, share = "options", 20
    families = tuple(BASE)

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        data = self._settle(arena, goods)
        family = chance.choices(self.families, [4 if name == "train" else 1 for name in self.families])[0]
        arguments = [argument.replace("{data}", data) for argument in BASE[family]]
        known = [
            option
            for option in json.loads((goods / OPTIONS).read_text())[family.removesuffix(" again")]
            if option not in NEVER
        ]
        asks, changes = False, []
        for _ in range(chance.choice((1, 1, 2, 3))):
            if known and chance.random() < 0.8:
                option = chance.choice(known)
                values = [self._value(chance, option) for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3)))]
                asks |= option in ("--filters", "--smoothing-samples", "--batch-size", "--size", "--tasks", "--steps")
                arguments += [option, *values]
                changes.append(" ".join([option, *(value[:40] for value in values)]))
            else:
                index = chance.randrange(1, len(arguments))
                if arguments[index - 1] in LENGTH:
                    continue
                arguments[index] = chance.choice((*PATHS, *TEXTS))
                changes.append(arguments[index][:40])
        return Case(self.name, f"{family}: {' '.join(changes)!r}", [arguments], None, family, asks=asks)

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        data = self._settle(arena, goods)
        return Case(self.name, "good", [[argument.replace("{data}", data) for argument in BASE[family]]])

    def _settle(self, arena: Arena, goods: Path) -> str:
        data = settle(arena, goods)
        (arena.work / "results").mkdir()
        os.mkfifo(arena.work / "fifo")
        (arena.work / "loop").symlink_to("loop")
        return data

    def _value(self, chance: random.Random, option: str) -> str:
        if option in LENGTH:
            return chance.choice(SHORT)
        kind = chance.random()
        if kind < 0.45:
            return str(chance.choice(NUMBERS))[:500]
        return chance.choice(WORDS if kind < 0.65 else PATHS if kind < 0.85 else TEXTS)
