"""Weights and values of SSVM and DLM, against the score function written out over pairs."""

import itertools

import pytest
import torch
from oracles import METRICS, order_of, pair_table, task_loss

from rankshot import ranking


def problem(seed, queries=6, items=14):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(queries, items, generator=random, dtype=torch.float64)
    relevance = torch.rand(queries, items, generator=random) < 0.4
    relevance[0], relevance[1] = True, False  # two that cannot be ranked
    valid = torch.rand(queries, items, generator=random) < 0.8
    return scores, relevance, valid


def score_of(above, scores, relevance):
    """F of one query's ranking, over its pair table."""
    y = pair_table(above, relevance)
    s, t = scores[relevance], scores[~relevance]
    return (y * (s[:, None] - t)).mean()


def written_out(framework, scores, relevance, valid, metric, epsilon, alpha, sign):
    """The objectives as METHODS and the paper write them, query by query: 0 where nothing can be ranked."""
    augmented = ranking.loss_augmented_ranking(scores, relevance, valid, metric=metric, epsilon=epsilon, sign=sign)
    reference = ranking.true_ranking if framework == "ssvm" else ranking.predicted_ranking
    other = reference(scores, relevance, valid)
    for query, keep in enumerate(valid):
        relevant, row = relevance[query][keep], scores[query][keep]
        if not relevant.any() or relevant.all():
            yield row.sum() * 0
            continue
        worst = augmented[query][keep]
        value = alpha * score_of(worst, row, relevant) - score_of(other[query][keep], row, relevant)
        if framework == "dlm":
            yield sign / epsilon * value
        else:
            order = order_of(worst, relevant, row.detach())
            yield value + epsilon * task_loss([bool(relevant[item]) for item in order], metric)


CASES = [("ssvm", +1), ("dlm", +1), ("dlm", -1)]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("framework", "sign"), CASES)
def test_value_and_weights_are_the_formula_and_its_gradient(framework, sign, metric):
    for seed, epsilon, alpha in itertools.product(range(3), (0.1, 1.0), (1.0, 10.0)):
        scores, relevance, valid = problem(seed)
        options = {"metric": metric, "epsilon": epsilon, "alpha": alpha}
        if framework == "ssvm":
            found = ranking.ssvm(scores, relevance, valid, **options)
        else:
            found = ranking.dlm(scores, relevance, valid, **options, sign=sign)
        leaf = scores.clone().requires_grad_()
        expected = torch.stack(list(written_out(framework, leaf, relevance, valid, **options, sign=sign)))
        expected.sum().backward()
        torch.testing.assert_close(found.loss, expected.detach(), atol=1e-9, rtol=0)
        torch.testing.assert_close(found.weights, leaf.grad, atol=1e-9, rtol=0)
        assert (found.weights[~valid] == 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_ssvm_with_alpha_1_is_the_structured_hinge(metric):
    for seed, epsilon in itertools.product(range(5), (0.1, 1.0, 10.0)):
        scores, relevance, valid = problem(seed, queries=20)
        loss, _ = ranking.ssvm(scores, relevance, valid, metric=metric, epsilon=epsilon, alpha=1.0)
        assert (loss >= -1e-12).all()
        # A ranking that is right by far more than the margin loses nothing.
        loss, weights = ranking.ssvm(scores + 1e4 * relevance, relevance, valid, metric=metric, epsilon=epsilon, alpha=1.0)
        torch.testing.assert_close(loss, torch.zeros_like(loss), atol=1e-9, rtol=0)
        assert (weights == 0).all()


def test_defaults_of_alpha():
    scores, relevance, valid = problem(0)
    for sign, alpha in ((+1, 10.0), (-1, 1.0)):
        default = ranking.dlm(scores, relevance, valid, sign=sign)
        assert torch.equal(default.weights, ranking.dlm(scores, relevance, valid, sign=sign, alpha=alpha).weights)
    default = ranking.ssvm(scores, relevance, valid)
    assert torch.equal(default.weights, ranking.ssvm(scores, relevance, valid, alpha=10.0).weights)


def test_weights_of_a_query_sum_to_zero():
    """F depends on differences of scores alone."""
    scores, relevance, valid = problem(1)
    for found in (ranking.dlm(scores, relevance, valid), ranking.ssvm(scores, relevance, valid, alpha=3.0)):
        torch.testing.assert_close(found.weights.sum(-1), torch.zeros(6, dtype=torch.float64), atol=1e-12, rtol=0)


def test_unknown_framework():
    from rankshot.ranking.objectives import settings

    with pytest.raises(ValueError, match="unknown framework 'svm': use one of 'ssvm', 'dlm'"):
        settings("svm")
