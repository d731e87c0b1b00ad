"""Calls of the library with arguments of any shape, type and size."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .arena import Arena
from .case import Case, bring
from .fuzz_json import settle
from .mutations import NUMBERS, ODD_TEXTS

REFUSALS = (ValueError, TypeError, OSError)  # also what `Gallery` raises for an id that is not there
Try = tuple[str, Callable[[], object]]
METRICS: tuple[Any, ...] = ("ap", "ndcg", "auc", "rr", "precision@1", "precision@3", "precision@0", "precision@x", "", "AP", None, 7, "precision@" + "9" * 30)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.uint8, torch.complex64)
PLACES = ("run", "classifier", "gallery", "missing", "", ".", "pictures", "run/config.json", "conv4-omniglot", "a\x00b", "/dev/zero", "x" * 5000)


class Calls:
    """One call, which gives something or says what is wrong with its arguments."""

    name, share = "calls", 16
    families = ("call",)

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
    told, act = chance.choice(TRIES)(chance)
    print(ascii(told[:3000]), flush=True)
    try:
        return f"gives {type(act()).__name__}"
    except REFUSALS as error:
        return ascii(f"{type(error).__name__}: {error}"[:500])


def number(chance: random.Random) -> Any:
    return chance.choice((*NUMBERS, True, None, "1", [1], np.float32(0.5), np.int64(3), 1j))


def small(chance: random.Random) -> Any:
    """Now and then something that a number should be and is not."""
    return chance.choice((1, 2, 3, 5)) if chance.random() < 0.6 else number(chance)


def tensor(chance: random.Random, *sides: int) -> Any:
    """Mostly of this shape and full of good numbers."""
    how = chance.random()
    shape = sides if how < 0.75 else tuple(chance.choice((0, 1, 2, 7)) for _ in range(chance.randrange(5)))
    dtype = torch.float32 if chance.random() < 0.7 else chance.choice(DTYPES)
    made = (torch.randn(shape) * chance.choice((1, 1, 1, 0, 1e-30, 1e30))).to(dtype)
    if made.is_floating_point() and made.numel() and chance.random() < 0.15:
        made.view(-1)[chance.randrange(made.numel())] = chance.choice((torch.nan, torch.inf, -torch.inf, 3e38))
    if how > 0.97:
        return chance.choice((None, "x", made.numpy() if dtype != torch.bfloat16 else None, made.tolist(), 3, made.to_sparse()))
    return made


def labels(chance: random.Random, count: int) -> Any:
    how = chance.random()
    made = torch.tensor([chance.randrange(max(1, chance.choice((1, 2, 3, count)))) for _ in range(count)])
    if how < 0.7:
        return made
    return chance.choice((made.float(), made.int(), -made, made + 2**62, made[:-1], made[None], made.tolist(), made.bool(), torch.full((count,), torch.nan), None))


def told(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"tensor({tuple(value.shape)}, {value.dtype})"
    return f"array({value.shape}, {value.dtype})" if isinstance(value, np.ndarray) else repr(value)[:200]


def _named(function: Any, *arguments: Any, **named: Any) -> Try:
    name = getattr(function, "__qualname__", str(function))
    shown = ", ".join([*map(told, arguments), *(f"{key}={told(each)}" for key, each in named.items())])
    return f"{name}({shown})", lambda: function(*arguments, **named)


def ranking(chance: random.Random) -> Try:
    from rankshot import ranking as module

    queries, items = chance.choice((1, 2, 5)), chance.choice((1, 2, 6, 40))
    scores = tensor(chance, queries, items)
    relevance = torch.rand(queries, items) < chance.choice((0, 0.2, 0.5, 1))
    chosen = chance.choice((relevance, relevance, relevance, relevance, tensor(chance, queries, items), relevance[:1], relevance.float()))
    valid = chance.choice((None, None, torch.rand(queries, items) < 0.7, torch.zeros(queries, items, dtype=torch.bool), "x"))
    metric = chance.choice(METRICS)
    name = chance.choice(("average_precision", "ndcg", "auc", "reciprocal_rank", "evaluate", "true_ranking", "predicted_ranking",
                          "loss_augmented_ranking", "dlm", "ssvm", "relevance_of", "get_metric", "loss_table", "precision_at"))  # fmt: skip
    function = getattr(module, name)
    if name == "evaluate":
        return _named(function, metric, scores, chosen, valid)
    if name in ("dlm", "ssvm", "loss_augmented_ranking"):
        more: dict[str, Any] = {"metric": metric} if chance.random() < 0.7 else {}
        more |= {"epsilon": number(chance)} if chance.random() < 0.3 else {}
        more |= {"sign": number(chance)} if chance.random() < 0.2 and name != "ssvm" else {}
        return _named(function, scores, chosen, valid=valid, **more)
    if name == "relevance_of":
        return _named(function, labels(chance, items))
    if name == "get_metric":
        return _named(function, metric)
    if name == "loss_table":
        return _named(function, metric, small(chance), chance.choice((1, 3, 0, -1, 2.5, None)))
    if name == "precision_at":
        cutoff = number(chance)
        return f"precision_at({cutoff!r})({told(scores)}, …)", lambda: function(cutoff)(scores, chosen, valid)
    return _named(function, scores, chosen, valid)


def loss(chance: random.Random) -> Try:
    from rankshot import losses

    name = chance.choice(losses.__all__)
    settings: dict[str, Any] = {}
    if name == "RankingLoss":
        for option in ("metric", "alpha", "epsilon", "sign", "smoothing", "samples", "method", "wide"):
            if chance.random() < 0.2:
                settings[option] = chance.choice(METRICS) if option == "metric" else small(chance) if option == "samples" else number(chance)
        if isinstance(settings.get("samples"), int) and settings["samples"] > 10**5 and settings["samples"] < 2**31:
            settings["samples"] = 3  # which is as long as was asked for
    elif name == "ClassifierLoss":
        odd = (1, 3, 0, -1, None, "x", 2.5, True, 2**63, 10**30, float("nan"))
        settings = {"classes": 3, "dimensions": 4} if chance.random() < 0.5 else {"classes": chance.choice(odd), "dimensions": chance.choice(odd)}
    elif chance.random() < 0.3:
        settings[chance.choice(("temperature", "margin", "bins", "neighbours", "scale"))] = number(chance)
    count = chance.choice((1, 2, 8))
    batch, names = tensor(chance, count, 4), labels(chance, count)
    if isinstance(batch, torch.Tensor) and batch.is_floating_point():
        batch.requires_grad_(chance.random() < 0.7)

    def act() -> object:
        value = getattr(losses, name)(**settings)(batch, names)
        if value.requires_grad:
            value.backward()
        return value

    return f"{name}({settings!r})({told(batch)}, {told(names)})", act


def image(chance: random.Random) -> Any:
    from PIL import Image

    made = np.random.default_rng(chance.randrange(99)).random((16, 16, 3))
    choices: tuple[Any, ...] = (
        "pictures/c1/0.png", Path("pictures/c1/1.png"), made, (made * 255).astype(np.uint8), made[..., 0], made.transpose(2, 0, 1), made.astype(np.float16),
        made * 300, np.full((3, 3, 3), np.nan), np.zeros((0, 3, 3)), np.zeros((16, 16, 16, 16)), "missing.png", "", b"bytes", None, 7, Image.new("F", (4, 4)),
        Image.new("RGBA", (1, 1)), torch.rand(3, 16, 16), torch.rand(1, 2, 3, 4), [1.0, 2.0], "/dev/zero", "pictures", np.array(["x"]), made > 0.5,
        np.zeros((2, 2), np.int64), Image.new("I", (3, 3), 70000), {}, made + 0j, np.zeros((16, 16, 3), object),
    )  # fmt: skip
    return chance.choice(choices) if chance.random() < 0.6 else "pictures/c1/0.png"


def embedder(chance: random.Random) -> Try:
    from rankshot import Embedder

    if chance.random() < 0.3:
        shape = chance.choice((None, (3, 16, 16), (1, 16, 16), (3, 0, 16), (3, -1, 16), (3, 16), "abc", (3, 16.5, 16), (3, 2**40, 2**40), 7, (3, 2, 2), ("3", "16", "16")))
        return _named(Embedder, chance.choice((*PLACES, None, torch.nn.Flatten(), torch.nn.Linear(3, 3))), shape, invert=chance.choice((None, True, "x")))
    images = chance.choice((image(chance), [image(chance) for _ in range(chance.choice((0, 1, 3)))]))
    return f"Embedder('run')({told(images)})", lambda: Embedder("run")(images)


def gallery(chance: random.Random) -> Try:
    from rankshot import Gallery

    way = chance.choice(("new", "open", "add", "add", "delete", "search", "search", "each", "duplicates", "save", "images"))
    vectors: Any = tensor(chance, chance.choice((1, 3)), 3)
    if chance.random() < 0.5:
        vectors = [[chance.choice((0.0, 1.0, number(chance))) for _ in range(3)] for _ in range(chance.choice((0, 1, 2)))]
    ids: Any = chance.choice((None, ["a"], ["a", "b"], ["x"], [""], [1], ["a\x00"], ["\ud800"], "ab", ["a"] * 2, [None], ["é" * 300], 7))
    notes: Any = chance.choice((None, [{}], [{"n": number(chance)}], [{"": ""}], [{1: 2}], [{"a": {"b": [1]}}], ["x"], [{"a\x00": "\ud800"}], [None], 7, [{"id": 1}]))
    where: Any = chance.choice((None, {"n": 1}, {"n": [1, 2]}, {"n": number(chance)}, {"": ""}, {"a.b": 1}, {'"': "'"}, {"n": {"a": 1}}, {}, "x", 7, {1: 1}, {"n": []}, {"n\x00": "\ud800"}))
    k = number(chance) if chance.random() < 0.4 else 2

    def opened() -> Any:
        return Gallery.open("vectors")

    if way == "new":
        return _named(Gallery, chance.choice((None, "new", "vectors", *PLACES)), chance.choice((None, None, "run", *PLACES)), dimensions=number(chance))
    if way == "open":
        return _named(Gallery.open, chance.choice((*PLACES, None, 7, "vectors")), chance.choice((None, "run", 7)))
    if way == "add":
        return f"add({told(vectors)}, {ids!r}, {notes!r})", lambda: opened().add(vectors, ids, notes)
    if way == "images":
        return f"add(images, {ids!r})", lambda: Gallery.open("gallery").add([image(chance) for _ in range(2)], ids, notes)
    if way == "delete":
        return f"delete({ids!r})", lambda: opened().delete(ids)
    if way == "search":
        query = chance.choice((vectors, [0.0, 1.0, 0.0], [[0.0, 1.0, 0.0]], np.ones(3), image(chance)))
        return f"search({told(query)}, {k!r}, {where!r})", lambda: opened().search(query, k, where)
    if way == "each":
        return f"search_each({told(vectors)}, {k!r}, {where!r})", lambda: opened().search_each(vectors, k, where)
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
    classes: Any = chance.choice(([n % 2 for n in range(count)], [f"c{n % 3}" for n in range(count)], labels(chance, count), None, ["a"] * count, list(range(count)), [None] * count, [1.5] * count, ["a", 1] * count))
    asked = tensor(chance, 2, 3)
    what = chance.choice(("predict", "predict_proba", "nearness", "neighbours", "score", "partial_fit", "remove_class", "save_pretrained", "open"))

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

    return f"FewShotClassifier({settings!r}).fit({told(examples)}, {told(classes)}).{what}({told(asked)})", act


def network(chance: random.Random) -> Try:
    import rankshot
    from rankshot.models import Conv4, save_pretrained

    if chance.random() < 0.4:
        return _named(rankshot.from_pretrained, chance.choice((*PLACES, None, 7, "begun")))
    sides = small(chance), chance.choice((1, 2, 4, 0, -1, None, "x", 2.5))
    shape = chance.choice((None, (3, 16, 16), (3, 16), (1, 2, 3), "abc", [3, 16, 16.0], (3, 0, 0)))
    place = chance.choice((*PLACES, "new"))
    if isinstance(sides[0], int) and sides[0] > 1000:
        sides = 3, sides[1]
    return f"save_pretrained(Conv4{sides}, {place[:50]!r}, {shape!r})", lambda: save_pretrained(Conv4(*sides), place, shape)  # type: ignore[arg-type]


def loaded(chance: random.Random) -> Try:
    from rankshot import data

    name = chance.choice((*(each for each in PLACES if each != "conv4-omniglot"), *(each for each in ODD_TEXTS if each != "glyphs"), None, 7, Path("pictures")))
    if chance.random() < 0.5:
        return _named(data.load, name, chance.choice(("train", "val", "x", None, "trainval")), chance.choice((None, "cache", "missing", "/dev/null", 7)))
    options = {chance.choice(("size", "channels", "seed", "invert", "x", "crop")): chance.choice((*NUMBERS, "x", None, True))}
    return _named(data.prepared, name, None, **options)


def trained(chance: random.Random) -> Try:
    from dataclasses import fields

    from rankshot.training import TrainConfig, train

    from .goods import SETTINGS

    name = next(each.parent.name for each in sorted(Path("cache").glob("*/manifest.json")))
    settings: dict[str, Any] = {**SETTINGS, "data": name, "updates": 1}
    names = [each.name for each in fields(TrainConfig) if each.name not in ("updates", "validation_episodes", "filters", "data")]
    for each in chance.sample(names, chance.choice((1, 2))):
        settings[each] = chance.choice((*NUMBERS, *ODD_TEXTS, None, True, ["flip"], [], ["x=1"], (2, 3), 7, "siamese", "nca", "cosine"))
    if isinstance(settings.get("samples"), int) and 10**4 < settings["samples"] < 2**31:
        settings["samples"] = 3
    changed = {key: value for key, value in settings.items() if SETTINGS.get(key) != value}
    return f"train(TrainConfig({changed!r}))", lambda: train(TrainConfig(**settings), chance.choice(("new", "run", "")), resume=chance.random() < 0.3)


TRIES: tuple[Callable[[random.Random], Try], ...] = (ranking, ranking, loss, loss, embedder, gallery, gallery, classifier, network, loaded, trained)
