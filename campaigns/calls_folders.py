"""Calls of what reads and writes folders: networks, data, training."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from .arguments import PLACES, Try, named, small
from .goods import SETTINGS
from .mutations import NUMBERS, ODD_TEXTS


def network(chance: random.Random) -> Try:
    import rankshot
    from rankshot import Preprocess
    from rankshot.models import Conv4, save_pretrained

    if chance.random() < 0.4:
        return named(rankshot.from_pretrained, chance.choice((*PLACES, None, 7, "begun")))
    sides = small(chance), chance.choice((1, 2, 4, 0, -1, None, "x", 2.5))
    preprocess = chance.choice((None, Preprocess(3, 16, 16), Preprocess(1, 2, 3), (3, 16, 16), "abc"))
    place = chance.choice((*PLACES, "new"))
    if isinstance(sides[0], int) and sides[0] > 1000:
        sides = 3, sides[1]
    save: Any = lambda: save_pretrained(Conv4(*sides), place, preprocess)  # type: ignore[arg-type]  # noqa: E731
    return f"save_pretrained(Conv4{sides}, {place[:50]!r}, {preprocess!r})", save


def loaded(chance: random.Random) -> Try:
    from rankshot import data

    name = chance.choice(
        (
            *(place for place in PLACES if place != "conv4-omniglot"),
            *(text for text in ODD_TEXTS if text != "glyphs"),
            None,
            7,
            Path("pictures"),
        )
    )
    if chance.random() < 0.5:
        return named(
            data.load,
            name,
            chance.choice(("train", "val", "x", None, "trainval")),
            chance.choice((None, "cache", "missing", "/dev/null", 7)),
        )
    options = {
        chance.choice(("size", "channels", "seed", "invert", "x", "crop")): chance.choice((*NUMBERS, "x", None, True))
    }
    return named(data.prepared, name, None, **options)


def trained(chance: random.Random) -> Try:
    from rankshot.training import TrainConfig, train

    name = next(path.parent.name for path in sorted(Path("cache").glob("*/manifest.json")))
    settings: dict[str, Any] = {**SETTINGS, "data": name, "updates": 1}
    names = [
        setting for setting in TrainConfig().flat() if setting not in ("updates", "validation_episodes", "filters", "data")
    ]
    for setting in chance.sample(names, chance.choice((1, 2))):
        settings[setting] = chance.choice(
            (*NUMBERS, *ODD_TEXTS, None, True, ["flip"], [], ["x=1"], (2, 3), 7, "siamese", "nca", "cosine")
        )
    if isinstance(settings.get("smoothing_samples"), int) and 10**4 < settings["smoothing_samples"] < 2**31:
        settings["smoothing_samples"] = 3
    changed = {key: value for key, value in settings.items() if SETTINGS.get(key) != value}
    return f"train(TrainConfig.of(**{changed!r}))", lambda: train(
        TrainConfig.of(**settings), chance.choice(("new", "run", "")), resume=chance.random() < 0.3
    )
