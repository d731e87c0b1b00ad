"""The gradient by unit vectors, before any normalisation, is that of weights times scores."""

import pytest
import torch

from rankshot import ranking
from rankshot.losses.chunked import Plan, rank
from rankshot.ranking.objectives import settings
from rankshot.ranking.pool import side_counts
from rankshot.ranking.sorted_rows import Ranking


@pytest.mark.parametrize("leave_out", [True, False])
def test_gradient_by_queries_and_by_items(leave_out):
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (20,), generator=random)
    queries = torch.nn.functional.normalize(torch.randn(20, 5, generator=random, dtype=torch.float64), dim=-1)
    items = queries.clone() if leave_out else queries.flip(0) * 0.5 + 0.1
    scale = torch.rand(20, generator=random, dtype=torch.float64)
    every = torch.arange(20)
    ids = (every, every) if leave_out else None
    counts = side_counts(labels) if leave_out else side_counts(labels, labels)
    plan = Plan(labels, labels, ids, counts, bound=20, rankings=(Ranking(settings(), 0.0, 1.0),), memory_budget=20_000)
    assert 1 < plan.chunk(queries) < 20
    found = rank(queries, items, plan, scale)

    masks = ranking.relevance_of(labels) if leave_out else ranking.relevance_of(labels, labels)
    expected = ranking.dlm(queries @ items.T, *masks)
    torch.testing.assert_close(found.losses, expected.loss)
    weights = expected.weights * scale[:, None]
    torch.testing.assert_close(found.by_queries, weights @ items)
    torch.testing.assert_close(found.by_items, weights.T @ queries)
    assert rank(queries, items, plan).by_queries is None
