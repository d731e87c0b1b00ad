"""None of these: how near an image must be to the nearest class to belong to any.

How near it is, its *nearness*, is its cosine with the nearest prototype, the mean of a class's examples. The threshold
comes from the examples themselves, leaving one out at a time: so near are images that do belong. Leaving out an example's
whole class shows how near strangers come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rankshot.fewshot.rules import class_sums


class Rejection(NamedTuple):
    """Where the line is, and what it costs by the examples themselves; nan where they cannot tell.

    threshold          less near is none of these
    false_rejections   share of the examples that would be turned away, each left out of its class
    false_acceptances  share that would be taken for another class, were theirs not there
    """

    threshold: float
    false_rejections: float
    false_acceptances: float


def nearness(queries: Tensor, centres: Tensor) -> Tensor:
    """(Q, D), (way, D) unit vectors -> (Q,)."""
    return (queries @ centres.T).amax(-1)


def among_themselves(support: Tensor, labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """How near the examples are as queries: left out of their class, of those that are not alone in it; and of all of them,
    where their class is not there."""
    sums = class_sums(support, labels, way)
    others = support @ nn.functional.normalize(sums, dim=-1).T
    others.scatter_(1, labels[:, None], float("-inf"))
    as_strangers = others.amax(-1)
    without = nn.functional.normalize(sums[labels] - support, dim=-1)
    in_company = torch.bincount(labels, minlength=way)[labels] > 1
    known = torch.maximum((support * without).sum(-1), as_strangers)[in_company]
    return known, as_strangers[as_strangers.isfinite()]


def calibrated(support: Tensor, labels: Tensor, way: int, rate: float) -> Rejection | None:
    """The threshold that turns away about this share of the examples. None: no class has two."""
    known, strangers = among_themselves(support, labels, way)
    return judged(float(known.quantile(rate)), known, strangers) if len(known) else None


def judged(threshold: float, known: Tensor, strangers: Tensor) -> Rejection:
    """What a threshold does."""
    rejected = float((known < threshold).double().mean()) if len(known) else math.nan
    accepted = float((strangers >= threshold).double().mean()) if len(strangers) else math.nan
    return Rejection(threshold, rejected, accepted)
