"""Images: every format under every name, damaged, lying about their size, or no files at all."""

from __future__ import annotations

import os
import random
from pathlib import Path

from .arena import Arena
from .case import Case, bring
from .goods import picture
from .image_files import hostile
from .mutations import other_file

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".webp", ".jp2", ".ppm", ".PNG")
NAMES: tuple[bytes, ...] = (
    b"b", b"b", b"b", b"b", b"b", b"b", b"b\x1b[31m", b"b\nrankshot: fine", b"\xff\xfe", "é🐈\u202e".encode(), b"-k",
    b"b" * 200, b" ", b"'\"`$(x)",
)  # fmt: skip
GOOD = "good.png"
STEPS = {
    "classify": [["classify", GOOD, "x", "--support", "pictures", "--model", "run", "--format", "json"]],
    "gallery add": [
        ["gallery", "add", "g", GOOD, "x", "--model", "run"],
        ["search", GOOD, "--gallery", "g", "--json", "-k", "1"],
    ],
    "search": [["search", "x", "--gallery", "gallery", "--sheet", "sheet.png"]],
    "support": [["classify", GOOD, "--support", "x", "--model", "run", "--format", "json"]],
    "data prepare": [["data", "prepare", "pictures", "--size", "8"], ["data", "verify"]],
}
PROBES = {"classify": f'"{GOOD}"', "gallery add": f'"{GOOD}"'}


class Images:
    """One hostile file among good ones."""

    name, share = "images", 30
    families = tuple(STEPS)

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        family = chance.choices(list(STEPS), (4, 4, 2, 1, 3))[0]
        folder, steps = self._settle(family, arena, goods)
        content, description = hostile(chance)
        name = chance.choice(NAMES) + chance.choice(SUFFIXES).encode()
        path = Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))
        path.write_bytes(content)
        if chance.random() < 0.1:
            description = other_file(path, chance, arena)
        if family == "search":  # the file itself is named
            steps = [
                [str(path.relative_to(arena.work)) if argument == "x" else argument for argument in step] for step in steps
            ]
        if family == "data prepare" and chance.random() < 0.2:
            steps = [[*steps[0], "--strict"]]
        return Case(
            self.name, f"{description}, as {name!r}; {family}", steps, None, family, PROBES.get(family), family in PROBES
        )

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        folder, steps = self._settle(family, arena, goods)
        bring(goods, arena, "gallery")
        picture(3, 1).save(folder / "fine.png")
        return Case(
            self.name, "good", [["pictures/c1/1.png" if e == "x" and family == "search" else e for e in s] for s in steps]
        )

    def _settle(self, family: str, arena: Arena, goods: Path) -> tuple[Path, list[list[str]]]:
        """Where the hostile file goes."""
        bring(goods, arena, "pictures", "run", *(["gallery"] if family == "search" else []))
        picture(2, 9).save(arena.work / GOOD)
        folder = arena.work / {"support": "x/cat", "data prepare": "pictures/c1"}.get(family, "x")
        folder.mkdir(parents=True, exist_ok=True)
        if family == "support":
            picture(1, 1).save(folder / "1.png")
            (arena.work / "x/dog").mkdir(exist_ok=True)
            picture(2, 2).save(arena.work / "x/dog/1.png")
        return folder, [list(step) for step in STEPS[family]]
