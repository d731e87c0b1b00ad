"""Calls of `ranking` and `losses`."""

from __future__ import annotations

import random
from typing import Any

import torch

from .arguments import METRICS, Try, described, labels, named, number, small, tensor


def ranking(chance: random.Random) -> Try:
    from rankshot import ranking as module

    queries, items = chance.choice((1, 2, 5)), chance.choice((1, 2, 6, 40))
    scores = tensor(chance, queries, items)
    relevance = torch.rand(queries, items) < chance.choice((0, 0.2, 0.5, 1))
    chosen = chance.choice(
        (relevance, relevance, relevance, relevance, tensor(chance, queries, items), relevance[:1], relevance.float())
    )
    valid = chance.choice(
        (None, None, torch.rand(queries, items) < 0.7, torch.zeros(queries, items, dtype=torch.bool), "x")
    )
    metric = chance.choice(METRICS)
    name = chance.choice(
        "average_precision ndcg auc reciprocal_rank evaluate true_ranking predicted_ranking loss_augmented_ranking dlm "
        "ssvm relevance_of get_metric loss_table precision_at".split()
    )
    function = getattr(module, name)
    if name == "evaluate":
        return named(function, metric, scores, chosen, valid)
    if name in ("dlm", "ssvm", "loss_augmented_ranking"):
        more: dict[str, Any] = {"metric": metric} if chance.random() < 0.7 else {}
        more |= {"epsilon": number(chance)} if chance.random() < 0.3 else {}
        more |= {"sign": number(chance)} if chance.random() < 0.2 and name != "ssvm" else {}
        return named(function, scores, chosen, valid=valid, **more)
    if name == "relevance_of":
        return named(function, labels(chance, items))
    if name == "get_metric":
        return named(function, metric)
    if name == "loss_table":
        return named(function, metric, small(chance), chance.choice((1, 3, 0, -1, 2.5, None)))
    if name == "precision_at":
        cutoff = number(chance)
        return f"precision_at({cutoff!r})({described(scores)}, …)", lambda: function(cutoff)(scores, chosen, valid)
    return named(function, scores, chosen, valid)


def loss(chance: random.Random) -> Try:
    from rankshot import losses

    name = chance.choice(losses.__all__)
    settings: dict[str, Any] = {}
    if name == "RankingLoss":
        for option in ("metric", "alpha", "epsilon", "sign", "smoothing", "smoothing_samples", "method", "coarse_weight"):
            if chance.random() < 0.2:
                settings[option] = (
                    chance.choice(METRICS)
                    if option == "metric"
                    else small(chance)
                    if option == "smoothing_samples"
                    else number(chance)
                )
        asked = settings.get("smoothing_samples")
        if isinstance(asked, int) and 10**5 < asked < 2**31:
            settings["smoothing_samples"] = 3  # which is as long as was asked for
    elif name == "ClassifierLoss":
        odd = (1, 3, 0, -1, None, "x", 2.5, True, 2**63, 10**30, float("nan"))
        settings = (
            {"classes": 3, "dimensions": 4}
            if chance.random() < 0.5
            else {"classes": chance.choice(odd), "dimensions": chance.choice(odd)}
        )
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

    return f"{name}({settings!r})({described(batch)}, {described(names)})", act
