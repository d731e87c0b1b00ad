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
    factors, stretch, stretched = _degrees(spread, start)
    weight = (spread.directions * factors) @ spread.directions.T
    weight = weight + (stretched * stretch).mm(stretched.T @ weight)
    if components == len(weight):
        return weight
    covariance = (spread.directions * spread.within) @ spread.directions.T + spread.between.T @ spread.between
    _, directions = torch.linalg.eigh(weight @ covariance @ weight.T)
    leading: Tensor = directions.flip(-1)[:, :components]
    return leading.T @ weight


def ranked_alike(spread: Spread, start: Start, turned: Tensor) -> Tensor:
    """Rows as a start maps them, but for a rotation, which changes no cosine: far less work than `started`.

    turned   (n, D), rows less the mean, along the directions of the spread
    """
    factors, stretch, stretched = _degrees(spread, start)
    along = (spread.directions.T @ stretched).to(turned)
    mapped = turned * factors.to(turned)
    return mapped + (mapped @ along * stretch.to(turned)) @ along.T


def _degrees(spread: Spread, start: Start) -> tuple[Tensor, Tensor, Tensor]:
    """Factors along the directions of the spread, (D,); and how much is added, (R,), along which others, (D, R) columns."""
    factors = torch.ones_like(spread.within)
    if start.shrinkage is not None and spread.within.mean() > 0:
        factors = (spread.within + start.shrinkage * spread.within.mean()).rsqrt()
        factors = factors / factors.mean()
    means = (spread.between @ spread.directions) * factors
    if len(means) > means.shape[1]:  # of many classes: a table of the same directions and sizes, with fewer rows
        means = torch.linalg.qr(means, mode="r").R
    _, sizes, directions = torch.linalg.svd(means, full_matrices=False)
    shares = sizes / sizes[0] if sizes[0] > 0 else torch.zeros_like(sizes)
    return factors, start.emphasis * shares, spread.directions @ directions.T
