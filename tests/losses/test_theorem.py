"""The General Loss Gradient Theorem, checked by statistics: DLM's gradient is that of the expected task loss.

A small network embeds points from a continuous distribution, each a query that ranks a few references. The expected
loss 1 - AP is smooth in the network's weights although every single loss is a step function, so its derivative can be
measured by finite differences over very many queries, and must be what DLM with alpha = 1 and a small epsilon estimates.
"""

import functools
from dataclasses import dataclass

import pytest
import torch

from rankshot import ranking
from rankshot.losses import RankingLoss
from rankshot.ranking import objectives

BATCHES, QUERIES = 100, 20_000
FEW = 20  # what is wrong differs by so much that these tell it
EPSILON = 0.02
STEP = 0.02  # of the finite difference; its error is of second order


@dataclass(frozen=True)
class Estimate:
    """A mean over batches, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values):
        values = torch.stack(values).double()
        return cls(values.mean().item(), (values.std() / len(values) ** 0.5).item())

    def agrees_with(self, other):
        """Within 3 standard errors and within 5 %."""
        difference = abs(self.mean - other.mean)
        return difference <= 3 * (self.error**2 + other.error**2) ** 0.5 and difference <= 0.05 * abs(other.mean)


LABELS = torch.tensor([0, 1, 0, 1, 0, 1])


def points_of(labels, random):
    """Two clouds in five dimensions, 1.4 apart along the first."""
    points = torch.randn(len(labels), 5, generator=random)
    points[:, 0] += 1.4 * labels - 0.7
    return points


REFS = points_of(LABELS, torch.Generator().manual_seed(2))
WEIGHTS = torch.eye(5) + 0.2 * torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
WEIGHTS[0] *= 0.5  # the dimension that tells the classes apart is too small: there is something to learn


def draw(number):
    """A batch of queries and their labels."""
    random = torch.Generator().manual_seed(number)
    labels = torch.randint(2, (QUERIES,), generator=random)
    return points_of(labels, random), labels


def embed(points, weights):
    return torch.tanh(points @ weights)


def task_loss(queries, labels, weights):
    queries, refs = (torch.nn.functional.normalize(embed(points, weights), dim=-1) for points in (queries, REFS))
    relevance, _ = ranking.relevance_of(labels, LABELS)
    return 1 - ranking.average_precision(queries @ refs.T, relevance).double().mean()


def dlm_gradient(queries, labels, sign, alpha):
    weights = WEIGHTS.clone().requires_grad_()
    loss = RankingLoss.paper(epsilon=EPSILON, alpha=alpha, sign=sign)
    loss(embed(queries, weights), labels, None, embed(REFS, weights), LABELS).backward()
    return weights.grad


@functools.cache
def direction():
    """Steepest, by a pilot run on other batches: there the derivative is largest beside its noise."""
    pilot = sum(dlm_gradient(*draw(10**6 + number), sign=+1, alpha=1.0) for number in range(50))
    return pilot / pilot.norm()


@functools.cache
def finite_difference():
    def one(number):
        points = draw(number)
        there, back = (task_loss(*points, WEIGHTS + step * direction()) for step in (STEP, -STEP))
        return (there - back) / (2 * STEP)

    return Estimate.of([one(number) for number in range(BATCHES)])


@functools.cache
def by_dlm(sign, alpha, batches=BATCHES):
    return Estimate.of([(dlm_gradient(*draw(n), sign, alpha) * direction()).sum() for n in range(batches)])


@pytest.mark.parametrize("sign", [+1, -1])
def test_dlm_is_the_gradient_of_the_expected_task_loss(sign):
    expected, found = finite_difference(), by_dlm(sign, alpha=1.0)
    assert expected.error < 0.02 * abs(expected.mean)  # or the test could not tell
    assert found.error < 0.02 * abs(expected.mean)
    assert found.agrees_with(expected)


@pytest.mark.parametrize("sign", [+1, -1])
def test_a_flipped_sign_is_not(sign, monkeypatch):
    """The augmented ranking of one update with the factor of the other."""

    def flipped(sides, above, chosen):
        right = objectives._dlm(sides, above, chosen)
        return right._replace(factor=-right.factor)

    expected = finite_difference()  # and the direction, found by the right one
    monkeypatch.setitem(objectives.FRAMEWORKS, "dlm", flipped)
    assert not by_dlm.__wrapped__(sign, alpha=1.0, batches=FEW).agrees_with(expected)


@pytest.mark.parametrize("sign", [+1, -1])
def test_alpha_10_is_not(sign):
    assert not by_dlm(sign, alpha=10.0, batches=FEW).agrees_with(finite_difference())
