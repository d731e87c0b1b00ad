"""Rows as a map learns from them."""

import numpy as np
import pytest
import torch
from scipy import sparse

from rankshot.adaptation import rows as module
from rankshot.adaptation.rows import Rows

X = np.random.default_rng(0).normal(size=(60, 9)) * 5 + 3


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_kept", [True, False])
def test_centred_and_of_scale_one(kind, is_kept, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 2**26 if is_kept else 0)
    monkeypatch.setattr(module, "VALUES_AT_ONCE", 40)
    rows = Rows.of(kind(X), None, 0)
    every = rows.at(np.arange(60))
    assert every.dtype == torch.float32
    torch.testing.assert_close(every.mean(0), torch.zeros(9), atol=1e-6, rtol=0)
    assert every.square().mean() == pytest.approx(1)
    assert torch.equal(rows.at([5, 3]), every[[5, 3]])
    units = (torch.nn.functional.normalize(each) for each in (every - rows.origin, rows.as_it_is(np.arange(60))))
    torch.testing.assert_close(*units)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_along_principal_directions(kind):
    rows = Rows.of(kind(X), 4, 0)
    assert rows.at([0, 1]).shape == (2, 4)
    np.testing.assert_allclose(rows.basis.T @ rows.basis, np.eye(4), atol=1e-6)
    with pytest.raises(ValueError, match="not seen in all of its dimensions"):
        rows.origin  # noqa: B018


def test_principal_directions_are_those_of_the_rows_that_may_be_looked_at():
    changed = X.copy()
    changed[40:] *= 100
    some = np.arange(40)
    one, other = (Rows.of(each, 4, 0).seen_by(some) for each in (X, changed))
    np.testing.assert_allclose(one.basis, other.basis)
    assert Rows.of(X, None, 0).seen_by(some).basis is None
