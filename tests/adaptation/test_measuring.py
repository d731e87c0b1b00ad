"""How well vectors rank one another, against the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import metric_of

from rankshot.adaptation import measuring, ranked


def plainly(vectors, labels, queries):
    """One query after another, every ranking sorted."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    precisions, hits = [], []
    for query in range(queries):
        others = [other for other in range(len(labels)) if other != query]
        order = sorted(others, key=lambda other: -(units[query] @ units[other]))
        relevance = [labels[other] == labels[query] for other in order]
        if any(relevance):
            precisions.append(metric_of(relevance, "ap"))
            hits.append(relevance[0])
    return (np.mean(precisions), np.mean(hits)) if precisions else (np.nan, np.nan)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 4))
def test_against_the_definition(seed, rows, classes):
    generator = np.random.default_rng(seed)
    vectors, labels = generator.normal(size=(rows, 3)), generator.integers(0, classes, rows)
    for queries in (rows, max(1, rows // 2)):
        found = ranked(torch.from_numpy(vectors), torch.from_numpy(labels), queries)
        np.testing.assert_allclose(found, plainly(vectors, labels, queries))


def test_arrays_are_as_good_as_tensors():
    vectors, labels = np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) % 3
    expected = ranked(torch.from_numpy(vectors), torch.from_numpy(labels))
    vectors.flags.writeable = False  # as those of a file that is mapped
    assert ranked(vectors, labels) == ranked(vectors[::-1], labels[::-1]) == expected


@pytest.mark.parametrize(
    ("vectors", "labels", "kind", "message"),
    [
        ([[1.0, 0.0]], torch.tensor([0]), TypeError, "vectors must be a tensor or a NumPy array, got list"),
        (torch.eye(2), [0, 1], TypeError, "labels must be a tensor or a NumPy array, got list"),
        (torch.eye(2).long(), torch.tensor([0, 1]), TypeError, r"vectors must be floating point, got torch\.int64"),
        (torch.eye(2), torch.tensor([0.0, 1.0]), TypeError, r"labels must be integers, got torch\.float32"),
        (torch.eye(2), torch.tensor([0]), ValueError, "labels must be one for each of 2 vectors, got 1"),
    ],
)
def test_bad_input(vectors, labels, kind, message):
    with pytest.raises(kind, match=message):
        ranked(vectors, labels)


def test_in_parts_it_is_the_same(monkeypatch):
    vectors, labels = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 5
    whole = ranked(vectors, labels)
    monkeypatch.setattr(measuring, "VALUES_AT_ONCE", 1)
    assert ranked(vectors, labels) == whole
