"""The decision against the paper's rule, one query and one class at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import metric_of

from rankshot.fewshot import class_scores
from rankshot.fewshot.rules import uneven_class_scores


def by_hand(similarities):
    """The AP of every class for one query, from its ranking of all representatives; ties put the class's own last."""
    way, shot = similarities.shape
    everyone = [(float(similarities[i, j]), i) for i in range(way) for j in range(shot)]
    values = []
    for i in range(way):
        order = sorted(everyone, key=lambda each, i=i: (-each[0], each[1] == i))
        values.append(metric_of([each[1] == i for each in order], "ap"))
    return values


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 2**31), st.booleans())
def test_several_representatives(way, shot, seed, ties):
    similarities = torch.randn(2, 3, way, shot, generator=torch.Generator().manual_seed(seed))
    if ties:
        similarities = similarities.round()
    scores = class_scores(similarities)
    assert scores.shape == (2, 3, way)
    for a in range(2):
        for b in range(3):
            values = torch.tensor(by_hand(similarities[a, b]), dtype=torch.float64)
            torch.testing.assert_close(scores[a, b], values, atol=1e-8, rtol=0)
            best = (values > values.max() - 1e-12).nonzero()[:, 0]
            nearest = similarities[a, b, best].amax(-1)
            assert nearest[best == scores[a, b].argmax()] == nearest.max()


def test_one_representative_is_the_nearest():
    similarities = torch.randn(4, 5, 1)
    assert torch.equal(class_scores(similarities), similarities[..., 0])


def test_similarities_that_are_none():
    with pytest.raises(TypeError, match="similarities must be a tensor, got list"):
        class_scores([[0.9, 0.1], [0.8, 0.7]])
    with pytest.raises(ValueError, match=r"similarities must be \(\.\.\., way, shot\), got shape \(3,\)"):
        class_scores(torch.zeros(3))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=6).filter(any), st.integers(0, 2**31), st.booleans())
def test_uneven_representatives(counts, seed, ties):
    random = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=random)]
    similarities = torch.randn(3, len(labels), generator=random)
    similarities = similarities.round() if ties else similarities
    scores = uneven_class_scores(similarities, labels, len(counts))
    for query, found in zip(similarities, scores, strict=True):
        expected = []
        for each, count in enumerate(counts):
            order = sorted(
                zip(query.tolist(), labels.tolist(), strict=True), key=lambda x, each=each: (-x[0], x[1] == each)
            )
            expected.append(metric_of([label == each for _, label in order], "ap") if count else -torch.inf)
        if max(counts) == min(counts) == 1:  # the nearest: AP says the same of it, and no more
            assert found.argmax() == labels[query.argmax()] or ties
        else:
            torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), atol=1e-8, rtol=0)


def test_uneven_is_even_where_it_is():
    similarities = torch.randn(4, 15)
    labels = torch.arange(15) % 5
    expected = class_scores(similarities.view(4, 3, 5).transpose(1, 2))
    assert torch.equal(uneven_class_scores(similarities, labels, 5), expected)
