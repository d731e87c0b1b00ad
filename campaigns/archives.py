"""What hostile archives are made of: a good data set, and names that no entry should have."""

from __future__ import annotations

import io
import random

from .goods import picture

NAMES = (
    "../../canary/x.png", "c1/../../../canary/x.png", "{canary}/x.png", "c1\\x.png", "..\\..\\x.png", "C:\\x.png",
    "c1/\x1b[31m.png", "c1/\nx.png",
    "c1/é🐈.png", "c1/" + "n" * 250 + ".png", "/".join("abcdefgh" * 30) + "/x.png", "c1/x\x00y.png", "", "c1/",
    "./c1/9.png", "c1//9.png", "c1/.png", " /x.png",
    "__MACOSX/c1/x.png", "train/c1/x.png", "c1/0.png", "C1/0.png", "manifest.json", "c1/cat.png.exe", "\u202e/x.png",
    "con/x.png", "-/x.png", "c1",
)  # fmt: skip


def entries(chance: random.Random) -> dict[str, bytes]:
    """A good data set: six classes with two images each."""
    files = {}
    for label in range(6):
        for number in range(2):
            file = io.BytesIO()
            picture(label, number, 8).save(file, "PNG")
            files[f"c{label}/{number}.png"] = file.getvalue()
    return files


def hostile_name(chance: random.Random, canary: str) -> str:
    return chance.choice(NAMES).replace("{canary}", canary)
