"""Metrics over batches and processes equal the functions over all at once, and torchmetrics' own where these agree."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics import retrieval

from rankshot import ranking
from rankshot.ranking import RetrievalMetric

METRICS = ["ap", "ndcg", "auc", "rr", "precision@3"]


def items(queries, most, seed, ties=False):
    """(n,) scores, relevance and queries, of queries of different sizes, in any order."""
    random = torch.Generator().manual_seed(seed)
    counts = torch.randint(1, most + 1, (queries,), generator=random)
    indexes = torch.repeat_interleave(torch.randperm(queries, generator=random) * 7 - 20, counts)
    order = torch.randperm(len(indexes), generator=random)
    scores = torch.rand(len(indexes), generator=random)
    scores = (scores * 4).round() / 4 if ties else scores
    return scores, torch.rand(len(indexes), generator=random) < 0.4, indexes[order]


def by_hand(metric, scores, target, indexes):
    """Query by query, with the functions."""
    values = [
        ranking.evaluate(metric, scores[indexes == query][None], target[indexes == query][None])
        for query in indexes.unique()
    ]
    return torch.cat(values).nanmean()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(METRICS), st.integers(1, 9), st.integers(1, 8), st.booleans())
def test_any_split_gives_what_the_functions_give(seed, metric, queries, pieces, ties):
    everything = items(queries, 12, seed, ties)
    found = RetrievalMetric(metric)
    for part in zip(*(column.tensor_split(pieces) for column in everything), strict=True):
        found.update(*part)
    torch.testing.assert_close(found.compute(), by_hand(metric, *everything), equal_nan=True)
    found.reset()
    assert found.compute().isnan()


THEIRS = {
    "ap": retrieval.RetrievalMAP,
    "ndcg": retrieval.RetrievalNormalizedDCG,
    "rr": retrieval.RetrievalMRR,
    "auc": retrieval.RetrievalAUROC,
}


@pytest.mark.parametrize("action", ["skip", "neg", "pos"])
@pytest.mark.parametrize("top_k", [None, 1, 4])
@pytest.mark.parametrize("name", ["ap", "ndcg", "rr", "precision@3"])
def test_it_equals_torchmetrics(name, top_k, action):
    if name == "precision@3":
        if top_k is not None:
            pytest.skip("torchmetrics' top_k is the K of precision@K")
        theirs = retrieval.RetrievalPrecision(top_k=3, empty_target_action=action)
    else:
        theirs = THEIRS[name](top_k=top_k, empty_target_action=action)
    ours = RetrievalMetric(name, top_k=top_k, empty_target_action=action)
    for seed in range(4):
        batch = items(20, 9, seed)
        for metric in (ours, theirs):
            metric.update(*batch[:2], indexes=batch[2])
    torch.testing.assert_close(ours.compute(), theirs.compute())


def test_area_under_the_curve_equals_torchmetrics():
    """Of queries that have both kinds of items: of others theirs is 0, and ours is not defined."""
    scores, target, indexes = items(20, 9, 0)
    both = {int(query) for query in indexes.unique() if 0 < target[indexes == query].float().mean() < 1}
    kept = torch.tensor([int(query) in both for query in indexes])
    ours, theirs = RetrievalMetric("auc"), retrieval.RetrievalAUROC()
    for metric in (ours, theirs):
        metric.update(scores[kept], target[kept], indexes=indexes[kept])
    torch.testing.assert_close(ours.compute(), theirs.compute())


@pytest.mark.parametrize("metric", ["ap", "rr"])
def test_of_equal_scores_the_irrelevant_item_comes_first(metric):
    found = RetrievalMetric(metric, top_k=1)
    found.update(torch.tensor([0.5, 0.5]), torch.tensor([True, False]), torch.tensor([3, 3]))
    assert found.compute() == 0
    found.update(torch.tensor([0.6, -5.0]), torch.tensor([True, False]), torch.tensor([3, 3]))
    assert found.compute() == 1


def test_a_metric_of_one_s_own():
    ap = ranking.get_metric("ap")
    both = [RetrievalMetric(metric) for metric in (ranking.Metric("mine", ap.loss, ap.step, ap.scale), "ap")]
    for metric in both:
        metric.update(*items(5, 6, 0))
    torch.testing.assert_close(both[0].compute(), both[1].compute())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.5], [1], [0]), TypeError, "preds must be a tensor"),
        ((torch.rand(2), torch.ones(3), torch.zeros(2).long()), ValueError, "target has shape .3,., but preds has .2,."),
        ((torch.ones(2).long(), torch.ones(2), torch.zeros(2).long()), TypeError, "preds must be floating point"),
        ((torch.rand(2), torch.ones(2), torch.zeros(2)), TypeError, "indexes must be whole numbers"),
        ((torch.rand(2), torch.tensor([0, 2]), torch.zeros(2).long()), ValueError, "target must be 0 or 1"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        RetrievalMetric().update(*arguments)


def test_bad_settings():
    with pytest.raises(ValueError, match="top_k must be"):
        RetrievalMetric(top_k=0)
    with pytest.raises(ValueError, match="unknown metric 'map'"):
        RetrievalMetric("map")
    with pytest.raises(ValueError, match="empty_target_action must be 'skip'"):
        RetrievalMetric(empty_target_action="none")
    found = RetrievalMetric(empty_target_action="error")
    found.update(torch.rand(2), torch.zeros(2), torch.zeros(2).long())
    with pytest.raises(ValueError, match="a query with nothing relevant"):
        found.compute()


def test_not_finite():
    with pytest.raises(ValueError, match="preds must be numbers, got nan"):
        RetrievalMetric().update(torch.tensor([float("nan"), 1.0]), torch.ones(2), torch.zeros(2).long())


def test_called_it_tells_the_metric_of_these_items_alone():
    found = RetrievalMetric("ap", top_k=5)
    first = torch.tensor([0.9, 0.8]), torch.tensor([True, False]), torch.tensor([0, 0])
    then = torch.tensor([0.9, 0.8]), torch.tensor([False, True]), torch.tensor([1, 1])
    assert (found(*first).item(), found(*then).item()) == (1.0, 0.5)
    assert found.compute().item() == 0.75
    assert repr(found) == "RetrievalMetric('ap', top_k=5, empty_target_action='skip')"
