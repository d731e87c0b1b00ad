"""Maps to start from that need no updates: they follow from the mean of every class and the spread within classes.

Linear discriminant analysis scales directions in which rows of one class differ down, and keeps those alone in which class
means differ. Both are a matter of degree here:

    shrinkage   the spread within classes is drawn towards an even one: 0 whitens it, a large number leaves it as it is
    emphasis    directions in which class means differ are stretched by up to 1 + emphasis

Rows of classes that were seen want much emphasis; classes that were not seen want little, and sometimes none. So which
start is best is found on rows that were held out (`choosing`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Start(NamedTuple):
    """What a map starts as; None: it only takes the mean away."""

    shrinkage: float | None
    emphasis: float


STARTS = tuple(Start(shrinkage, emphasis) for shrinkage in (None, 10.0, 1.0, 0.1) for emphasis in (0.0, 1.0, 3.0, 10.0))


class Spread(NamedTuple):
    """What is known of rows in classes, in float64.

    mean         (D,)
    within       (D,) variances within classes along `directions`, (D, D) columns
    between      (C, D) class means less the mean, each times the root of its share of the rows
    """

    mean: Tensor
    within: Tensor
    directions: Tensor
    between: Tensor


def spread_of(vectors: Tensor, labels: Tensor) -> Spread:
    """Of rows (n, D) and their classes (n,)."""
    vectors = vectors.double()
    _, classes, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    means = vectors.new_zeros(len(counts), vectors.shape[1]).index_add_(0, classes, vectors) / counts[:, None]
    apart, mean = vectors - means[classes], vectors.mean(0)
    within, directions = torch.linalg.eigh(apart.T @ apart / len(vectors))
    between = (means - mean) * (counts / len(vectors)).sqrt()[:, None]
    return Spread(mean, within.clamp(min=0), directions, between)


def started(spread: Spread, start: Start, components: int) -> Tensor:
    """The weights (components, D) of a start: fewer than D are those along which the mapped rows spread most."""
    dimensions = len(spread.mean)
    weight = torch.eye(dimensions, dtype=torch.float64)
    if start.shrinkage is not None and spread.within.mean() > 0:
        factors = (spread.within + start.shrinkage * spread.within.mean()).rsqrt()
        weight = (spread.directions * (factors / factors.mean())) @ spread.directions.T
    if start.emphasis:
        _, sizes, directions = torch.linalg.svd(spread.between @ weight.T, full_matrices=False)
        if sizes[0] > 0:
            weight = weight + start.emphasis * (directions.T * (sizes / sizes[0])) @ directions @ weight
    if components == dimensions:
        return weight
    covariance = (spread.directions * spread.within) @ spread.directions.T + spread.between.T @ spread.between
    _, directions = torch.linalg.eigh(weight @ covariance @ weight.T)
    leading: Tensor = directions.flip(-1)[:, :components]
    return leading.T @ weight
