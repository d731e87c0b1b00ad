"""Logistic regression of many support sets at once, against scikit-learn's of one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from rankshot.fewshot.logistic import logistic_weights
from rankshot.vectors import unit_vectors


def support_sets(sets, examples, dimensions, way, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.arange(way), torch.randint(way, (examples - way,), generator=generator)])
    centres = torch.randn(way, dimensions, generator=generator)
    noise = torch.randn(sets, examples, dimensions, generator=generator)
    return unit_vectors((centres[labels] + noise).flatten(0, 1)).view(sets, examples, dimensions), labels


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(0, 20), st.integers(2, 40), st.integers(0, 10**6))
def test_its_logits_are_those_of_scikit_learn(way, more, dimensions, seed):
    support, labels = support_sets(2, way + more, dimensions, way, seed)
    weights = logistic_weights(support, labels, way)
    for vectors, ours in zip(support, weights, strict=True):
        if way == 2:  # which scikit-learn fits by one vector for both classes, with half of the penalty
            model = LogisticRegression(C=20, fit_intercept=False, tol=1e-12, max_iter=10_000, class_weight="balanced")
            theirs = model.fit(vectors.double().numpy(), labels.numpy()).coef_[0]
            assert np.allclose(ours[1] - ours[0], theirs, atol=1e-4)
            continue
        model = LogisticRegression(C=10, fit_intercept=False, tol=1e-12, max_iter=10_000, class_weight="balanced")
        theirs = model.fit(vectors.double().numpy(), labels.numpy()).coef_
        assert np.allclose(ours - ours.mean(0), theirs - theirs.mean(0), atol=1e-4)


def test_an_example_twice_and_one_without_direction():
    """Fewer directions than examples: nothing to divide by."""
    support = torch.tensor([[[1.0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0], [0.0, 0, 0, 0, 0]]])
    weights = logistic_weights(support, torch.tensor([0, 0, 1, 1]), 2)
    assert weights.isfinite().all()
    assert (support[0, :2].double() @ weights[0].T).argmax(-1).tolist() == [0, 0]


def test_classes_count_alike_however_many_examples_they_have():
    support = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    once = logistic_weights(support, torch.tensor([0, 1]), 2)
    often = logistic_weights(support[:, [0, 1, 1, 1, 1]], torch.tensor([0, 1, 1, 1, 1]), 2)
    middle = torch.tensor([0.5, 0.5], dtype=torch.float64)
    for weights in (once, often):
        assert abs(float(middle @ (weights[0, 0] - weights[0, 1]))) < 1e-4


def test_one_class_cannot_be_told_apart():
    with pytest.raises(ValueError, match="there must be two at least, got 1"):
        logistic_weights(torch.ones(1, 2, 3), torch.zeros(2, dtype=torch.long), 1)
