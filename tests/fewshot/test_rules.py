"""The decision against the paper's rule, one query and one class at a time."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import metric_of

from rankshot.fewshot import class_scores


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
