"""Logistic regression on unit vectors, of many small support sets at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

STRENGTH = 0.1  # of the penalty on the weights, as scikit-learn's C = 10 has it (docs/benchmarks.md)
ITERATIONS = 300  # at most
PRECISE = 1e-6  # the largest step of a weight that is small enough to stop at


def logistic_weights(support: Tensor, labels: Tensor, way: int) -> Tensor:
    """A linear classifier for each support set: (E, S, D) of classes (S,) -> (E, way, D) float64.

    Multinomial, with a squared penalty. How many examples a class happens to have is no prior: all classes count alike, and
    there is no intercept.
    """
    if way < 2:
        raise ValueError("logistic regression tells classes apart: there must be two at least, got 1 class")
    support = support.double()
    targets = nn.functional.one_hot(labels, way).to(support)
    counts = targets.sum(0)
    importance = (len(labels) / (way * counts[labels]))[:, None]
    if support.shape[-2] >= support.shape[-1]:
        return _fitted(support, targets, importance).mT
    basis, triangle = torch.linalg.qr(support.mT)  # with few examples, in the space that they span
    weights: Tensor = basis @ _fitted(triangle.mT, targets, importance)
    return weights.mT


def _fitted(examples: Tensor, targets: Tensor, importance: Tensor) -> Tensor:
    """(E, S, R), (S, way), (S, 1) -> (E, R, way), where the penalised cross entropy is least.

    Its second derivative is at most that of a quadratic function which is the same everywhere (Böhning, 1992): one matrix
    to factor, and every step goes down. Nesterov's momentum, begun anew where it points uphill, makes it quick.
    """
    identity = torch.eye(examples.shape[-1], dtype=examples.dtype, device=examples.device)
    factor = torch.linalg.cholesky(0.5 * examples.mT @ (importance * examples) + STRENGTH * identity)
    weights = examples.new_zeros(*examples.shape[:-2], examples.shape[-1], targets.shape[-1])
    ahead, momentum = weights, 1.0
    for _ in range(ITERATIONS):
        wrong = importance * ((examples @ ahead).softmax(-1) - targets)
        gradient = examples.mT @ wrong + STRENGTH * ahead
        after = ahead - torch.cholesky_solve(gradient, factor)
        step = after - weights
        if float(step.abs().max()) < PRECISE:
            return after
        uphill = (gradient * step).sum((-2, -1), keepdim=True) > 0
        following = 0.5 * (1 + (1 + 4 * momentum**2) ** 0.5)
        ahead = after + step * ((momentum - 1) / following) * ~uphill
        weights, momentum = after, following
    return weights
