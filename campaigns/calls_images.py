"""Calls of what people have images for: Embedder, Gallery, FewShotClassifier."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from .arguments import PLACES, Try, described, image, labels, named, number, tensor


def embedder(chance: random.Random) -> Try:
    from rankshot import Embedder

    if chance.random() < 0.3:
        from rankshot import Preprocess

        side = (16, 16, 0, -1, 16.5, 2**40, "16", None, 2)
        sizes: list[Any] = [chance.choice((3, 1, 0, 7, "3")), chance.choice(side), chance.choice(side)]
        how: dict[str, Any] = {
            "fit": chance.choice(("crop", "pad", "x", None)),
            "mean": chance.choice(((), (0.5,), "x", (1, 2, 3))),
        }
        ways: tuple[Any, ...] = (None, (3, 16, 16), 7, lambda: Preprocess(*sizes), lambda: Preprocess(*sizes, **how))
        made = chance.choice(ways)
        model: Any = chance.choice((*PLACES, None, torch.nn.Flatten(), torch.nn.Linear(3, 3)))
        return (
            f"Embedder({model!r:.60}, Preprocess(*{sizes}, **{how}))",
            lambda: Embedder(model, made() if callable(made) else made),
        )
    images = chance.choice((image(chance), [image(chance) for _ in range(chance.choice((0, 1, 3)))]))
    return f"Embedder('run')({described(images)})", lambda: Embedder("run")(images)


def gallery(chance: random.Random) -> Try:
    from rankshot import Gallery

    way = chance.choice(("new", "open", "add", "add", "delete", "search", "search", "each", "duplicates", "save", "images"))
    vectors: Any = tensor(chance, chance.choice((1, 3)), 3)
    if chance.random() < 0.5:
        vectors = [[chance.choice((0.0, 1.0, number(chance))) for _ in range(3)] for _ in range(chance.choice((0, 1, 2)))]
    ids: Any = chance.choice(
        (None, ["a"], ["a", "b"], ["x"], [""], [1], ["a\x00"], ["\ud800"], "ab", ["a"] * 2, [None], ["é" * 300], 7)
    )
    notes: Any = chance.choice(
        (
            None,
            [{}],
            [{"n": number(chance)}],
            [{"": ""}],
            [{1: 2}],
            [{"a": {"b": [1]}}],
            ["x"],
            [{"a\x00": "\ud800"}],
            [None],
            7,
            [{"id": 1}],
        )
    )
    where: Any = chance.choice(
        (
            None,
            {"n": 1},
            {"n": [1, 2]},
            {"n": number(chance)},
            {"": ""},
            {"a.b": 1},
            {'"': "'"},
            {"n": {"a": 1}},
            {},
            "x",
            7,
            {1: 1},
            {"n": []},
            {"n\x00": "\ud800"},
        )
    )
    k = number(chance) if chance.random() < 0.4 else 2

    def opened() -> Any:
        return Gallery.open("vectors")

    if way == "new":
        return named(
            Gallery,
            chance.choice((None, "new", "vectors", *PLACES)),
            chance.choice((None, None, "run", *PLACES)),
            dimensions=number(chance),
        )
    if way == "open":
        return named(Gallery.open, chance.choice((*PLACES, None, 7, "vectors")), chance.choice((None, "run", 7)))
    if way == "add":
        return f"add({described(vectors)}, {ids!r}, {notes!r})", lambda: opened().add(vectors, ids, notes)
    if way == "images":
        return f"add(images, {ids!r})", lambda: Gallery.open("gallery").add([image(chance) for _ in range(2)], ids, notes)
    if way == "delete":
        return f"delete({ids!r})", lambda: opened().delete(ids)
    if way == "search":
        query = chance.choice((vectors, [0.0, 1.0, 0.0], [[0.0, 1.0, 0.0]], np.ones(3), image(chance)))
        return f"search({described(query)}, {k!r}, {where!r})", lambda: opened().search(query, k, where)
    if way == "each":
        return f"search_each({described(vectors)}, {k!r}, {where!r})", lambda: opened().search_each(vectors, k, where)
    if way == "duplicates":
        return f"duplicates({k!r})", lambda: opened().duplicates(k)
    place = chance.choice((*PLACES, "new", "vectors", "faiss:new"))
    return f"save({place[:50]!r})", lambda: opened().save(place)


def classifier(chance: random.Random) -> Try:
    from rankshot import FewShotClassifier

    settings: dict[str, Any] = {}
    for name in ("rule", "reject", "threshold", "unknown"):
        if chance.random() < 0.3:
            settings[name] = chance.choice(("ap", "nearest", "prototype", 7)) if name == "rule" else number(chance)
    count = chance.choice((1, 4, 6))
    examples = tensor(chance, count, 3)
    classes: Any = chance.choice(
        (
            [n % 2 for n in range(count)],
            [f"c{n % 3}" for n in range(count)],
            labels(chance, count),
            None,
            ["a"] * count,
            list(range(count)),
            [None] * count,
            [1.5] * count,
            ["a", 1] * count,
        )
    )
    asked = tensor(chance, 2, 3)
    what = chance.choice(
        "predict predict_proba nearness neighbours score partial_fit remove_class save_pretrained open".split()
    )

    def act() -> object:
        if what == "open":
            return FewShotClassifier.from_pretrained(chance.choice(PLACES))
        made = FewShotClassifier(**settings).fit(examples, classes)
        if what in ("score", "partial_fit"):
            return getattr(made, what)(asked, classes)
        if what == "remove_class":
            return made.remove_class(chance.choice((0, "c0", None, 99, [1])))
        if what == "save_pretrained":
            return made.save_pretrained(chance.choice((*PLACES, "new")))
        return made.neighbours(asked, number(chance)) if what == "neighbours" else getattr(made, what)(asked)

    return (
        f"FewShotClassifier({settings!r}).fit({described(examples)}, {described(classes)}).{what}({described(asked)})",
        act,
    )
