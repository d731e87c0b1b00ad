"""Values against scikit-learn and against the definitions; loss tables against the values."""

import copy
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import METRICS, metric_of, task_loss
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from rankshot import ranking
from rankshot.ranking.metrics import METRICS as BY_NAME
from rankshot.ranking.metrics import Metric, get_metric, precision_metric

FUNCTIONS = {
    "ap": ranking.average_precision,
    "ndcg": ranking.ndcg,
    "auc": ranking.auc,
    "rr": ranking.reciprocal_rank,
    "precision@1": ranking.precision_at(1),
    "precision@2": ranking.precision_at(2),
    "precision@3": ranking.precision_at(3),
    "precision@10": ranking.precision_at(10),
}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ranking.average_precision, average_precision_score),
        (ranking.auc, roc_auc_score),
        (ranking.ndcg, lambda truth, scores: ndcg_score([truth], [scores])),
    ],
    ids=["ap", "auc", "ndcg"],
)
def test_agrees_with_scikit_learn(ours, theirs):
    random = np.random.default_rng(0)
    for items in (2, 5, 40, 700):
        scores = random.permuted(np.tile(np.linspace(-1, 1, items), (20, 1)), axis=1)  # no ties
        relevance = random.random((20, items)) < 0.3
        relevance[:, 0], relevance[:, 1] = True, False
        values = ours(torch.tensor(scores), torch.tensor(relevance))
        expected = [theirs(*row) for row in zip(relevance, scores, strict=True)]
        np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_value_is_the_definition(name, data):
    items = data.draw(st.integers(2, 9))
    scores = torch.tensor(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=items, max_size=items)))
    relevance = torch.tensor(data.draw(st.lists(st.booleans(), min_size=items, max_size=items)))
    relevance[0], relevance[1] = True, False
    # A tie is a mistake: at equal scores the irrelevant items come first.
    order = sorted(range(items), key=lambda item: (-float(scores[item]), bool(relevance[item])))
    value = FUNCTIONS[name](scores[None].double(), relevance[None])
    assert value.item() == pytest.approx(metric_of([bool(relevance[item]) for item in order], name), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_what_is_not_valid_does_not_count(name):
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(30, 12, generator=random)
    relevance = torch.rand(30, 12, generator=random) < 0.5
    valid = torch.rand(30, 12, generator=random) < 0.7
    values = FUNCTIONS[name](scores.where(valid, torch.nan), relevance, valid)
    for query in range(30):
        keep = valid[query]
        if keep.any():
            alone = FUNCTIONS[name](scores[query : query + 1, keep], relevance[query : query + 1, keep])
            torch.testing.assert_close(values[query : query + 1], alone, equal_nan=True)
        else:
            assert values[query].isnan()


@pytest.mark.parametrize("name", METRICS)
def test_nothing_relevant_is_nan_and_nothing_irrelevant_is_the_best(name):
    scores = torch.randn(2, 4)
    relevance = torch.tensor([[False] * 4, [True] * 4])
    nothing, everything = FUNCTIONS[name](scores, relevance).tolist()
    assert np.isnan(nothing)
    if name == "auc":
        assert np.isnan(everything)  # there are no pairs to be right about
    else:
        assert everything == pytest.approx(metric_of([True] * 4, name))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("P", "N"), [(1, 1), (1, 4), (4, 1), (3, 4), (5, 5)])
def test_loss_table_adds_up_to_the_task_loss(name, P, N):
    table = ranking.loss_table(name, P, N)
    assert table.shape == (P, N + 1)
    for relevant_places in itertools.combinations(range(P + N), P):
        order = [place in relevant_places for place in range(P + N)]
        above = [place - k for k, place in enumerate(relevant_places)]
        loss = sum(table[k, n].item() for k, n in enumerate(above))
        assert loss == pytest.approx(task_loss(order, name), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_the_differences_of_the_loss(name, dtype):
    metric = get_metric(name)
    k = torch.arange(1, 50, dtype=torch.float64)[:, None]
    n = torch.arange(0, 5000, dtype=torch.float64)
    exact = metric.loss(k, n).diff(dim=-1)
    steps = metric.step(k.to(dtype), n[1:].to(dtype)).double()
    torch.testing.assert_close(steps, exact, rtol=1e-5 if dtype == torch.float32 else 1e-9, atol=1e-15)
    assert metric.concave == bool((steps.diff(dim=-1) <= 0).all())


def test_names():
    assert {name: get_metric(name).name for name in BY_NAME} == {name: name for name in BY_NAME}
    assert get_metric("precision@17").name == "precision@17"
    mine = precision_metric(3)
    assert get_metric(mine) is mine


@pytest.mark.parametrize("name", ["map", "precision@", "precision@x", "precision@-1", "AP", "", None, 3])
def test_unknown_metric(name):
    with pytest.raises(ValueError, match="unknown metric") as error:
        get_metric(name)
    assert repr(name) in str(error.value)


def test_precision_at_nothing():
    for cutoff in (2.0, 2.5, "2", None):
        with pytest.raises(ValueError, match="whole number") as error:
            ranking.precision_at(cutoff)
        assert repr(cutoff) in str(error.value)
    for make in (ranking.precision_at, lambda cutoff: get_metric(f"precision@{cutoff}")):
        with pytest.raises(ValueError, match=r"k of precision@k must be a whole number from 1 to 16,777,216, got 0"):
            make(0)


def test_loss_table_of_an_empty_side():
    with pytest.raises(ValueError, match="n_relevant must be a whole number from 1 to 16,777,216, got 0"):
        ranking.loss_table("ap", 0, 3)


@pytest.mark.parametrize("cutoff", [2**31, 2**63, 999999999999999999999, 10**30, 10**99])
def test_precision_at_more_than_any_ranking_has(cutoff):
    for make in (ranking.precision_at, lambda cutoff: get_metric(f"precision@{cutoff}")):
        with pytest.raises(ValueError, match=r"k of precision@k must be a whole number from 1 to 16,777,216, got"):
            make(cutoff)
    with pytest.raises(ValueError, match="unknown metric"):
        get_metric("precision@" + "9" * 5000)
    with pytest.raises(ValueError, match="n_irrelevant must be a whole number from 1 to"):
        ranking.loss_table("ap", 2, cutoff)


def test_a_metric_of_ones_own():
    """Expected number of irrelevant items above the last relevant one, as a share: only the last k counts."""
    worst = Metric(
        "worst",
        loss=lambda k, n: n * 0.5**k,
        step=lambda k, n: 0.5**k + 0 * n,
        scale=lambda P, N, k: 1 / N,
        concave=True,
    )
    scores = torch.tensor([[0.9, 0.8, 0.7, 0.6]])
    relevance = torch.tensor([[False, True, False, True]])
    assert ranking.evaluate(worst, scores, relevance).item() == pytest.approx(1 - (0.5 + 0.25 * 2) / 2)
    assert ranking.loss_augmented_ranking(scores, relevance, metric=worst, epsilon=100.0).tolist() == [[0, 2, 0, 2]]


@pytest.mark.parametrize("name", METRICS)
def test_half_precision_and_device(name, device):
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(5, 30, generator=random).to(torch.bfloat16)
    relevance = torch.rand(5, 30, generator=random) < 0.3
    value = FUNCTIONS[name](scores.to(device), relevance.to(device))
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.cpu(), FUNCTIONS[name](scores.float(), relevance))


@pytest.mark.parametrize("name", METRICS)
def test_a_named_metric_is_copied_by_its_name(name):
    metric = get_metric(name)
    assert copy.deepcopy(metric) is metric
    mine = Metric("ap", metric.loss, metric.step, metric.scale)  # a name that is taken does not make it another's
    assert copy.deepcopy(mine) is not get_metric("ap")
