"""Smooth-AP against its definition, query by query, item by item."""

import math

import pytest
import torch

from rankshot import ranking
from rankshot.losses import SmoothAPLoss


def by_definition(embeddings, labels, temperature):
    unit = embeddings / embeddings.norm(dim=-1, keepdim=True)
    values = []
    for query in range(len(labels)):
        items = [each for each in range(len(labels)) if each != query]
        relevant = [each for each in items if labels[each] == labels[query]]
        if not relevant or len(relevant) == len(items):
            continue

        def above(other, item, query=query):
            return torch.sigmoid((unit[query] @ unit[other] - unit[query] @ unit[item]) / temperature)

        precisions = []
        for item in relevant:
            among_relevant = 1 + sum(above(other, item) for other in relevant if other != item)
            among_all = 1 + sum(above(other, item) for other in items if other != item)
            precisions.append(among_relevant / among_all)
        values.append(1 - sum(precisions) / len(precisions))
    return sum(values) / len(values)


@pytest.mark.parametrize("temperature", [0.01, 0.3])
def test_value_and_gradient(temperature, device):
    random = torch.Generator().manual_seed(0)
    embeddings = torch.randn(11, 4, generator=random, dtype=torch.float64).to(device)
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 5, 0], device=device)  # a class of one cannot be asked for
    results = []
    for loss in (SmoothAPLoss(temperature), lambda *batch: by_definition(*batch, temperature)):
        own = embeddings.clone().requires_grad_()
        value = loss(own, labels)
        value.backward()
        results.append((value.detach(), own.grad))
    torch.testing.assert_close(*results)


def test_a_low_temperature_is_average_precision(device):
    random = torch.Generator().manual_seed(1)
    embeddings = torch.randn(20, 3, generator=random, dtype=torch.float64).to(device)
    labels = (torch.arange(20) % 4).to(device)
    unit = torch.nn.functional.normalize(embeddings, dim=-1)
    expected = 1 - ranking.average_precision(unit @ unit.T, *ranking.relevance_of(labels)).mean()
    torch.testing.assert_close(SmoothAPLoss(1e-7)(embeddings, labels), expected)


def test_under_autocast(device):
    embeddings, labels = torch.randn(12, 4, device=device), torch.arange(12, device=device) % 3
    with torch.autocast(device, dtype=torch.bfloat16):
        value = SmoothAPLoss()(embeddings, labels)
    torch.testing.assert_close(value, SmoothAPLoss()(embeddings, labels))


def test_nothing_to_rank_is_zero():
    embeddings = torch.randn(4, 3, requires_grad=True)
    value = SmoothAPLoss()(embeddings, torch.zeros(4, dtype=torch.long))
    value.backward()
    assert value == 0
    assert not embeddings.grad.any()


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_temperature(temperature):
    with pytest.raises(ValueError, match=r"temperature must be a number from 1e-09 to 1e[+]09, got"):
        SmoothAPLoss(temperature)
