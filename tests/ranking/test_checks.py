"""Bad input is refused with an error that names the value; what is masked out may hold anything."""

import itertools

import pytest
import torch

from rankshot import ranking

CALLS = {
    "average_precision": ranking.average_precision,
    "ndcg": ranking.ndcg,
    "auc": ranking.auc,
    "reciprocal_rank": ranking.reciprocal_rank,
    "precision_at": ranking.precision_at(2),
    "true_ranking": ranking.true_ranking,
    "predicted_ranking": ranking.predicted_ranking,
    "loss_augmented_ranking": ranking.loss_augmented_ranking,
    "ssvm": ranking.ssvm,
    "dlm": ranking.dlm,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


def good():
    scores = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    relevance = torch.tensor([[True, False, False], [False, True, False]])
    return scores, relevance


@every_call
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_valid_scores_must_be_finite(call, bad):
    scores, relevance = good()
    scores[1, 2] = bad
    with pytest.raises(ValueError, match=f"finite.*got {bad} for query 1, item 2"):
        call(scores, relevance)
    valid = torch.ones_like(relevance)
    with pytest.raises(ValueError, match=f"got {bad} for query 1, item 2"):
        call(scores, relevance, valid)
    valid[1, 2] = False
    results = call(scores, relevance, valid)
    for result in results if isinstance(results, tuple) else [results]:
        assert result.isfinite().all()


@every_call
def test_scores_so_large_that_sums_overflow(call):
    scores, relevance = good()
    scores[0, 1] = 2.0**127
    with pytest.raises(ValueError, match=r"at most .* got 1.7014118346046923e\+38 for query 0, item 1"):
        call(scores, relevance)
    scores[0, 1] = 1e37  # large, but sums of three are fine
    call(scores, relevance)


@every_call
def test_shapes(call):
    scores, relevance = good()
    with pytest.raises(ValueError, match=r"relevance has shape \(2, 2\), but scores have \(2, 3\)"):
        call(scores, relevance[:, :2])
    with pytest.raises(ValueError, match=r"valid has shape \(1, 3\), but scores have \(2, 3\)"):
        call(scores, relevance, relevance[:1])
    for shape in ((3,), (1, 2, 3), (0, 3), (3, 0)):
        with pytest.raises(ValueError, match="at least one of each") as error:
            call(torch.zeros(shape), torch.zeros(shape, dtype=torch.bool))
        assert str(shape) in str(error.value)


@every_call
def test_types(call):
    scores, relevance = good()
    with pytest.raises(TypeError, match=r"scores must be a tensor, got ndarray"):
        call(scores.numpy(), relevance)
    with pytest.raises(TypeError, match=r"relevance must be a tensor, got list"):
        call(scores, relevance.tolist())
    with pytest.raises(TypeError, match=r"relevance must be a bool tensor, got torch.int64"):
        call(scores, relevance.long())
    with pytest.raises(TypeError, match=r"valid must be a bool tensor, got torch.float32"):
        call(scores, relevance, scores)
    with pytest.raises(TypeError, match=r"scores must be floating point, got torch.int64"):
        call(scores.long(), relevance)


@pytest.mark.parametrize("epsilon", [0, 0.0, -1, -0.5, torch.nan, torch.inf])
def test_epsilon(epsilon):
    for call in (ranking.loss_augmented_ranking, ranking.ssvm, ranking.dlm):
        with pytest.raises(ValueError, match=rf"epsilon must be a number from 1e-12 to 1e\+12, got {epsilon}"):
            call(*good(), epsilon=epsilon)


@pytest.mark.parametrize("sign", [0, 2, -3])
def test_sign(sign):
    for call in (ranking.loss_augmented_ranking, ranking.dlm):
        with pytest.raises(ValueError, match=f"sign must be .* got {sign}"):
            call(*good(), sign=sign)


@pytest.mark.parametrize("alpha", [torch.nan, torch.inf])
def test_alpha(alpha):
    for call in (ranking.ssvm, ranking.dlm):
        with pytest.raises(ValueError, match=rf"alpha must be a number from -1e\+12 to 1e\+12, got {alpha}"):
            call(*good(), alpha=alpha)


def test_unknown_metric():
    for call in (ranking.loss_augmented_ranking, ranking.ssvm, ranking.dlm):
        with pytest.raises(ValueError, match="unknown metric 'map'"):
            call(*good(), metric="map")


def test_queries_with_an_empty_side_are_ranked_without_complaint():
    scores = torch.tensor([[0.3, 0.1, 0.2]] * 3)
    relevance = torch.tensor([[True] * 3, [False] * 3, [True, False, False]])
    for metric, sign in itertools.product(("ap", "ndcg", "auc", "rr", "precision@2"), (+1, -1)):
        above = ranking.loss_augmented_ranking(scores, relevance, metric=metric, sign=sign)
        assert (above[:2] == 0).all()
    for call in (ranking.true_ranking, ranking.predicted_ranking):
        assert (call(scores, relevance)[:2] == 0).all()
    assert (ranking.dlm(scores, relevance).weights[:2] == 0).all()
    assert (ranking.ssvm(scores, relevance).loss[:2] == 0).all()
