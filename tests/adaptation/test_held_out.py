"""Which rows are learned from, and which tell how well."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankshot.adaptation.held_out import MOST_COMPANY, MOST_HELD, folds


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(2, 300), st.sampled_from(["auto", "rows"]))
def test_no_row_is_on_both_sides(seed, classes, rows, how):
    labels = np.random.default_rng(seed).integers(-1, classes, rows)
    if not (labels >= 0).any():
        return
    for fold in folds(labels, how, 0.2, seed):
        assert not set(fold.learned) & set(fold.held_out)
        assert set(fold.company) <= set(fold.learned)
        assert (labels[np.concatenate([fold.learned, fold.held_out])] >= 0).all()
        assert len(fold.held_out) <= MOST_HELD
        _, counts = np.unique(labels[fold.held_out], return_counts=True)
        assert counts.max() > 1  # something can be ranked


@pytest.mark.parametrize(
    ("classes", "number", "held"), [(4, 3, 2), (5, 3, 2), (10, 3, 5), (19, 3, 9), (20, 1, 4), (100, 1, 20)]
)
def test_classes_stay_whole(classes, number, held):
    labels = np.repeat(np.arange(classes), 5)
    found = folds(labels, "auto", 0.2, 0)
    assert len(found) == number
    for fold in found:
        assert len(set(labels[fold.held_out])) == held
        assert not set(labels[fold.held_out]) & set(labels[fold.learned])
        assert len(fold.learned) + len(fold.held_out) == len(labels)


def test_rows_of_few_classes_are_shared_out_within_each():
    labels = np.repeat([0, 1, 2], [50, 10, 3])
    found = folds(labels, "auto", 0.2, 0)
    assert len(found) == 3
    for fold in found:
        assert np.bincount(labels[fold.held_out], minlength=3).tolist() == [10, 2, 0]
        assert not len(fold.company)
    assert len(set.union(*(set(fold.held_out) for fold in found))) == 3 * 12


def test_large_data_are_sampled():
    labels = np.repeat(np.arange(100), 500)
    (fold,) = folds(labels, "classes", 0.2, 0)
    assert (len(fold.held_out), len(fold.company)) == (MOST_HELD, MOST_COMPANY)
    assert len(fold.learned) == 80 * 500
    assert np.bincount(labels[fold.held_out]).max() == 15


def test_too_little_to_hold_out():
    assert folds(np.array([0, 0, 0, 1, 1, 1]), "auto", 0.2, 0) == []
    with pytest.raises(ValueError, match="needs 4 classes of two rows or more, got 2"):
        folds(np.array([0, 0, 1, 1]), "classes", 0.2, 0)
