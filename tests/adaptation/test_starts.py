"""Maps in closed form."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rankshot.adaptation.starts import STARTS, Start, ranked_alike, spread_of, started


def rows(classes=5, each=30, dimensions=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes * each) % classes
    centres = torch.randn(classes, dimensions, generator=generator, dtype=torch.float64)
    mixed = torch.randn(dimensions, dimensions, generator=generator, dtype=torch.float64)
    return (
        centres[labels] + torch.randn(len(labels), dimensions, generator=generator, dtype=torch.float64)
    ) @ mixed, labels


def cosines(vectors):
    units = torch.nn.functional.normalize(vectors, dim=-1)
    return units @ units.T


@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.parametrize("classes", [3, 40])  # fewer and more than dimensions
def test_the_short_way_gives_the_same_cosines(start, classes):
    X, labels = rows(classes)
    spread = spread_of(X, labels)
    by_weights = (X - spread.mean) @ started(spread, start, 6).T
    turned = ranked_alike(spread, start, (X - spread.mean) @ spread.directions)
    torch.testing.assert_close(cosines(turned), cosines(by_weights))


def test_without_shrinkage_and_emphasis_it_only_takes_the_mean_away():
    X, labels = rows()
    spread = spread_of(X, labels)
    torch.testing.assert_close(started(spread, Start(None, 0.0), 6), torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(spread.mean, X.mean(0))


def test_no_shrinkage_whitens_what_classes_spread_by():
    X, labels = rows()
    spread = spread_of(X, labels)
    weight = started(spread, Start(0.0, 0.0), 6)
    means = torch.stack([X[labels == label].mean(0) for label in range(5)])
    apart = (X - means[labels]) @ weight.T
    within = apart.T @ apart / len(X)
    torch.testing.assert_close(within / within[0, 0], torch.eye(6, dtype=torch.float64), atol=1e-8, rtol=0)


def test_much_emphasis_is_discriminant_analysis():
    """The leading directions of a whitened and emphasised start span what scikit-learn's discriminants span."""
    X, labels = rows(each=200)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X.numpy(), labels.numpy()).scalings_[:, :4]
    ours = started(spread_of(X, labels), Start(0.0, 1e6), 4).numpy()
    together = np.concatenate(
        [theirs.T / np.linalg.norm(theirs.T, axis=1, keepdims=True), ours / np.linalg.norm(ours, axis=1, keepdims=True)]
    )
    assert np.linalg.svd(together, compute_uv=False)[4:].max() < 1e-5


def test_fewer_components_are_those_of_most_spread():
    X, labels = rows()
    spread = spread_of(X, labels)
    mapped = (X - spread.mean) @ started(spread, Start(None, 0.0), 2).T
    _, sizes, _ = torch.linalg.svd(X - X.mean(0), full_matrices=False)
    torch.testing.assert_close(mapped.square().sum(), sizes[:2].square().sum())


@pytest.mark.parametrize("X", [torch.ones(6, 3), torch.zeros(6, 3)], ids=["ones", "zeros"])
def test_rows_that_do_not_differ(X):
    spread = spread_of(X, torch.arange(6) % 2)
    for start in STARTS:
        assert started(spread, start, 3).isfinite().all()
        assert ranked_alike(spread, start, X).isfinite().all()
