"""`RankingTransformer` beside NCA and LMNN."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER

NAMES = {
    "wine": "wine",
    "breast-cancer": "breast cancer",
    "digits": "digits",
    "omniglot-conv4": "Omniglot, Conv4",
    "omniglot-pixels": "Omniglot, pixels",
    "mini-imagenet-pixels": "mini-ImageNet, pixels",
    "mini-imagenet-conv4": "mini-ImageNet, Conv4",
}
METHODS = {"as_it_is": "as it is", "nca": "NCA", "lmnn": "LMNN", "ours": "`RankingTransformer`"}
FITTED = ("nca", "lmnn", "ours")


def ranking_transformer() -> str:
    """mAP, 1-nearest-neighbour accuracy and time; where ours is worse, and which fit had no end."""
    r = json.loads((FOLDER / "ranking_transformer.json").read_text())
    head = ["rows x dimensions", *METHODS.values(), *(f"{METHODS[name]}, s" for name in FITTED), "NCA / ours"]
    rows = [[f"{NAMES[name]}: held-out {found['held_out']}", *_row(found)] for name, found in r["data_sets"].items()]
    where = f"{r['processor']}, one thread, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    versions = {name: _versions(r, name) for name in ("nca", "lmnn")}
    return "\n\n".join(
        [
            f"`python -m benchmarks.ranking_transformer`, measured on {where}; NCA of {versions['nca']}; LMNN of "
            f"{versions['lmnn']}.",
            "**mAP / 1-nearest-neighbour accuracy** of held-out rows among themselves, in %, and **seconds of a fit** "
            "by the processor; of the others by cosine or Euclidean distance, whichever has the higher mAP",
            table(["", *head], rows),
            " ".join([*_worse(r), *_without_end(r)]),
        ]
    )


def _row(found: dict[str, Any]) -> list[str]:
    methods = found["methods"]
    figures = [_figures(methods.get(name)) for name in METHODS]
    best = max((methods[name]["map"] for name in METHODS if "map" in methods.get(name, {})), default=None)
    bold = [
        f"**{text}**" if "map" in methods.get(name, {}) and methods[name]["map"] == best else text
        for name, text in zip(METHODS, figures, strict=True)
    ]
    has_both = {"nca", "ours"} <= methods.keys()
    ratio = _time_of(methods["nca"]) / _time_of(methods["ours"]) if has_both else None
    least = "> " if has_both and methods["nca"]["reached_limit"] else ""
    return [
        f"{found['rows']:,} x {found['dimensions']:,}",
        *bold,
        *(_seconds(methods.get(name)) for name in FITTED),
        "–" if ratio is None else f"{least}{ratio:.{3 if ratio >= 1 else 2}g}x",
    ]


def _figures(told: dict[str, Any] | None) -> str:
    return "–" if told is None or "map" not in told else f"{100 * told['map']:.1f} / {100 * told['nearest']:.1f}"


def _time_of(told: dict[str, Any]) -> float:
    """Of the processor; by the clock where the fit was killed."""
    return float(told.get("processor_seconds", told["seconds"]))


def _seconds(told: dict[str, Any] | None) -> str:
    if told is None or told.get("out_of_memory"):
        return "–"
    seconds = _time_of(told)
    many = f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.2g}"
    return f"> {many}" if told["reached_limit"] else many


def _versions(r: dict[str, Any], method: str) -> str:
    told = (found["methods"].get(method, {}).get("versions") for found in r["data_sets"].values())
    return next((" with ".join(each) for each in told if each), "no known version")


def _listed(names: Iterable[str]) -> str:
    return "; ".join(names)


def _worse(r: dict[str, Any]) -> list[str]:
    """Where ours ranks worse than the best rival or X as it is, and where it takes longer than one of them."""
    ranks: list[str] = []
    slower: dict[str, list[str]] = {}
    for name, found in r["data_sets"].items():
        methods = found["methods"]
        if "ours" not in methods:
            continue
        ours = methods["ours"]
        for other in ("as_it_is", "nca", "lmnn"):
            told = methods.get(other, {})
            for key, measure in (("map", "mAP"), ("nearest", "1-nearest-neighbour accuracy")):
                if told.get(key, 0) > ours[key]:
                    behind = f"{100 * (told[key] - ours[key]):.2g} points of {measure} behind {METHODS[other]}"
                    ranks.append(f"{NAMES[name]}, {behind}")
        for other in ("nca", "lmnn"):
            told = methods.get(other, {})
            if "map" in told and _time_of(told) < _time_of(ours):
                slower.setdefault(METHODS[other], []).append(NAMES[name])
    of = r["summary"]
    judged = len(of["at_least_the_best_rival"]) + len(of["worse"])
    found_best = f"Its mAP is at least the best rival's on {len(of['at_least_the_best_rival'])} of {judged}."
    return [
        found_best,
        *([f"Where it is worse: {_listed(ranks)}."] if ranks else ["It is nowhere worse than another."]),
        *(f"{other} is faster on {', '.join(names)}." for other, names in slower.items()),
    ]


def _without_end(r: dict[str, Any]) -> list[str]:
    """Fits that were killed at their limit of time, or had too little memory."""
    late, large = [], []
    for name, found in r["data_sets"].items():
        for method, told in found["methods"].items():
            what = f"{METHODS[method]} on {NAMES[name]}"
            if told.get("out_of_memory"):
                large.append(what)
            elif told["reached_limit"]:
                kept = ", as far as it had come" if "map" in told else ""
                late.append(f"{what} ({told['seconds_given'] / 60:.0f} minutes by the clock{kept})")
    return [
        *([f"Killed at the limit of time: {_listed(late)}."] if late else ["No fit reached its limit of time."]),
        *([f"More than {r['memory_gib']:.0f} GiB of memory were needed by {_listed(large)}."] if large else []),
    ]
