"""The rows of X as a map learns from them: dense or sparse, in memory or on the disk; a few at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

SAMPLE = 20_000  # rows by which mean, scale and principal directions are found
VALUES_AT_ONCE = 2**24
MOST_KEPT = 2**26  # values that are made ready once and kept, which is 256 MiB

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Rows:
    """Rows less a mean and of scale 1, in float32; along principal directions where X has too many dimensions.

    X is read where a batch needs it, so that it may be memory-mapped. The mean is taken off before anything is rounded.

    mean    (D,) and scale, of X
    basis   (D, P) orthonormal; None: all dimensions as they are
    """

    def __init__(self, X: Any, mean: Array, scale: float, basis: Array | None = None) -> None:
        self.X, self.mean, self.scale, self.basis = X, mean, scale, basis
        self.dimensions = X.shape[1] if basis is None else basis.shape[1]
        self.components: int | None = None
        self.seed = 0
        self._kept: Tensor | None = None

    @classmethod
    def of(cls, X: Any, components: int | None, seed: int, among: Indices | None = None) -> Rows:
        """Measured on some of the rows.

        components   how many principal directions. None: all dimensions
        among        indices of the rows that may be looked at. None: all
        """
        among = np.arange(X.shape[0]) if among is None else among
        chosen = among[_some(len(among), SAMPLE, seed)]
        rows = X[chosen]
        mean = np.asarray(rows.mean(0, dtype=np.float64)).ravel()
        found = cls(X, mean, 1.0, None if components is None else _principal(rows, mean, components, seed))
        found.components, found.seed = components, seed
        found.scale = _deviation(found.centred(chosen))
        if X.shape[0] * found.dimensions <= MOST_KEPT:
            found._kept = found.at(np.arange(X.shape[0]))
        return found

    def seen_by(self, among: Indices) -> Rows:
        """The same rows, along principal directions that only these rows have told of."""
        return self if self.basis is None else Rows.of(self.X, self.components, self.seed, among)

    def at(self, indices: Any) -> Tensor:
        """(n, P) float32, of these rows."""
        if self._kept is not None:
            return self._kept[torch.as_tensor(indices)]
        indices = np.asarray(indices)
        a_part = max(1, VALUES_AT_ONCE // max(1, self.X.shape[1]))
        parts = [self._part(indices[start : start + a_part]) for start in range(0, len(indices), a_part)]
        return torch.cat(parts) if parts else torch.zeros(0, self.dimensions)

    def as_it_is(self, indices: Any) -> Tensor:
        """(n, D) float32, of these rows: the directions of X itself."""
        rows = self.X[np.asarray(indices)]
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        rows = rows.astype(np.float64)
        largest = np.abs(rows).max(1, keepdims=True, initial=0.0)  # a row's length does not matter, only its direction
        return torch.from_numpy(np.ascontiguousarray(rows / np.where(largest > 0, largest, 1), dtype=np.float32))

    @property
    def origin(self) -> Tensor:
        """Where the origin of X is among the rows of `at`: less this offset, they are X as it is."""
        if self.basis is not None:
            raise ValueError("X is not seen in all of its dimensions")
        return torch.from_numpy(-self.mean / self.scale).float()

    def _part(self, indices: Indices) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.centred(indices) / self.scale, dtype=np.float32))

    def centred(self, indices: Indices) -> Array:
        """(n, P), in float64: neither digits nor sizes are lost before the scale is one."""
        rows = self.X[indices]
        rows = (rows.toarray() if sparse.issparse(rows) else np.asarray(rows)).astype(np.float64) - self.mean
        return rows if self.basis is None else rows @ self.basis

    def some(self, indices: Indices, most: int = SAMPLE, seed: int = 0) -> Indices:
        """At most so many of these indices, in order."""
        return indices[_some(len(indices), most, seed)]


def _deviation(rows: Array) -> float:
    """Of all values; 1 where they are all the same. No square is out of range."""
    largest = float(np.abs(rows).max(initial=0.0))
    return largest * float(np.sqrt(np.square(rows / largest).mean())) if largest > 0 else 1.0


def _some(count: int, most: int, seed: int) -> Indices:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))


def _principal(rows: Any, mean: Array, components: int, seed: int) -> Array:
    """(D, P) directions along which the rows spread most, the most first."""
    from sklearn.utils.extmath import randomized_svd

    if not sparse.issparse(rows):
        rows = rows - mean.astype(rows.dtype)
    components = min(components, *rows.shape)
    directions = randomized_svd(rows, components, random_state=seed)[2].T
    return np.asarray(directions, dtype=np.float64)
