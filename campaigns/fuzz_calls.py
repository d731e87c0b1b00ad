"""Calls of the library: each gives something, or says what is wrong with its arguments."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from .arena import Arena
from .arguments import Try
from .calls_folders import loaded, network, trained
from .calls_images import classifier, embedder, gallery
from .calls_numbers import loss, ranking
from .case import Case, bring
from .fuzz_json import settle

REFUSALS = (ValueError, TypeError, OSError)  # also what `Gallery` raises for an id that is not there
TRIES: tuple[Callable[[random.Random], Try], ...] = (
    *(ranking, ranking, loss, loss, embedder, gallery, gallery, classifier, network, loaded, trained),
)


class Calls:
    """One call, which gives something or says what is wrong with its arguments."""

    name, share = "calls", 16
    families: tuple[str, ...] = ("call",)

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        settle(arena, goods)
        bring(goods, arena, "vectors")
        return Case(self.name, "a call of the library", [], chance.randrange(2**60), "call")

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        settle(arena, goods)
        bring(goods, arena, "vectors")
        return Case(self.name, "good", [], 0)


def call(number: int) -> str:
    """What came of the call of that number; 0 is a good one."""
    chance = random.Random(f"call/{number}")
    torch.manual_seed(number % 2**60)
    warnings.simplefilter("ignore")
    if not number:
        from rankshot import Embedder

        return str(Embedder("run")(["pictures/c1/0.png"]).shape)
    description, act = chance.choice(TRIES)(chance)
    print(ascii(description[:3000]), flush=True)
    try:
        return f"gives {type(act()).__name__}"
    except REFUSALS as error:
        return ascii(f"{type(error).__name__}: {error}"[:500])
