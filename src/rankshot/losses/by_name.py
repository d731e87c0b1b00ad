"""The losses under the names of the paper's tables, for command lines and configs."""

from __future__ import annotations

from torch import nn

from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss

NAMES = ("map-dlm", "map-ssvm", "siamese")


def by_name(
    name: str,
    dimensions: int,
    *,
    metric: str = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
    sign: int = +1,
) -> nn.Module:
    """ "map-dlm" and "map-ssvm" with any metric; "siamese", which takes no such options, for embeddings of `dimensions`.

    >>> by_name("map-dlm", 64, alpha=3.0)
    RankingLoss(metric='ap', framework='dlm', epsilon=1, alpha=3, sign=+1, reduction='mean')
    """
    if name not in NAMES:
        raise ValueError(f"unknown method {name!r}: there is {', '.join(map(repr, NAMES))}")
    if name == "siamese":
        if (metric, epsilon, alpha, sign) != ("ap", 1.0, None, +1):
            raise ValueError("the siamese loss ranks nothing: it takes no metric, epsilon, alpha or sign")
        return SiameseLoss(dimensions)
    return RankingLoss(metric, name.removeprefix("map-"), epsilon, alpha, sign)
