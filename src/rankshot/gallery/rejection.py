"""None of these: how near an image must be to the nearest class to belong to any.

How near it is, its *nearness*, is its cosine with the nearest prototype, the mean of a class's examples. Where the classes
are known that the network was trained on, its likeness to these counts against it: an image that looks like something else
that the network knows is less likely one of yours (`fewshot.class_means.nearness`). The threshold comes from the examples
themselves, leaving one out at a time: so near are images that do belong. Leaving out an example's whole class shows how
near strangers come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rankshot.fewshot import class_means
from rankshot.fewshot.rules import class_sums, prototypes


class Rejection(NamedTuple):
    """Where the line is, and what it costs by the examples themselves; nan where they cannot tell.

    threshold          less near is none of these
    false_rejections   share of the examples that would be turned away, each left out of its class
    false_acceptances  share that would be taken for another class, were theirs not there
    """

    threshold: float
    false_rejections: float
    false_acceptances: float


def nearness(queries: Tensor, centres: Tensor, others: Tensor | None = None) -> Tensor:
    """(Q, D), (way, D) and perhaps (classes, D) that the network was trained on, unit vectors -> (Q,)."""
    return class_means.nearness(queries @ centres.T, None if others is None else queries @ others.T)


def among_themselves(support: Tensor, labels: Tensor, way: int, others: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """How near the examples are as queries: left out of their class, of those that are not alone in it; and of all of them,
    where their class is not there."""
    cosines = support @ prototypes(support, labels, way).T
    alike, in_company = _with_their_class(support, labels, way)
    to_others = None if others is None else support @ others.T
    known = class_means.nearness(cosines.scatter(1, labels[:, None], alike[:, None]), to_others)[in_company]
    strangers = class_means.nearness(cosines.scatter(1, labels[:, None], float("-inf")), to_others)
    return known, strangers[strangers.isfinite()]


def _with_their_class(support: Tensor, labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """The cosine of every example with the mean of the others of its class, and whether it has any."""
    sums = class_sums(support, labels, way)
    without = nn.functional.normalize(sums[labels] - support, dim=-1)
    return (support * without).sum(-1), torch.bincount(labels, minlength=way)[labels] > 1


def calibrated(support: Tensor, labels: Tensor, way: int, rate: float, others: Tensor | None = None) -> Rejection | None:
    """The threshold that turns away about this share of the examples. None: no class has two."""
    known, strangers = among_themselves(support, labels, way, others)
    return judged(float(known.quantile(rate)), known, strangers) if len(known) else None


def judged(threshold: float, known: Tensor, strangers: Tensor) -> Rejection:
    """What a threshold does."""
    rejected = float((known < threshold).double().mean()) if len(known) else math.nan
    accepted = float((strangers >= threshold).double().mean()) if len(strangers) else math.nan
    return Rejection(threshold, rejected, accepted)
