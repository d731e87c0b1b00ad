"""A map that has been learned, as arrays that are applied to X itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from rankshot.models.vector_map import VectorMap
from rankshot.vectors import unit_vectors

from .rows import Rows

VALUES_AT_ONCE = 2**24
Array = NDArray[np.float64]


@dataclass(frozen=True)
class FittedMap:
    """Rows less an offset, mapped, and of length 1.

    offset   (D,)
    weight   (K, D); None: the identity
    inner, bias, outer   of the hidden layer, (H, D), (H,) and (K, H), where there is one
    scale    of rows less their offset: what they are divided by where more is to be learned
    """

    offset: Array
    weight: Array | None = None
    inner: Array | None = None
    bias: Array | None = None
    outer: Array | None = None
    scale: float = 1.0

    @property
    def dimensions(self) -> int:
        return len(self.offset)

    @property
    def components(self) -> int:
        return len(self.offset if self.weight is None else self.weight)

    @classmethod
    def of(cls, vector_map: VectorMap, rows: Rows) -> FittedMap:
        """Of what a map has learned from rows that were centred, scaled and perhaps projected."""
        found = {name: tensor.detach().double().numpy() for name, tensor in vector_map.named_parameters()}
        offset = found.pop("offset")
        for name in ("weight", "inner"):
            if name in found:
                found[name] = (found[name] if rows.basis is None else found[name] @ rows.basis.T) / rows.scale
        largest = np.abs(found["weight"]).max() or 1.0  # lengths do not matter, and float32 has not room for all
        for name in ("weight", "outer"):
            if name in found:
                found[name] = found[name] / largest
        offset = rows.mean + rows.scale * (offset if rows.basis is None else rows.basis @ offset)
        return cls(offset, **found, scale=rows.scale)

    def __call__(self, X: Any) -> NDArray[Any]:
        """(n, D) -> (n, K), in the precision of X; dense or sparse."""
        found = np.empty((X.shape[0], self.components), dtype=X.dtype)
        a_part = max(1, VALUES_AT_ONCE // max(self.dimensions, self.components))
        for start in range(0, X.shape[0], a_part):
            part = self._mapped(X[start : start + a_part])
            largest = np.abs(part).max(1, keepdims=True, initial=0.0)  # first: the shortest count too
            part = part / np.where(largest > 0, largest, 1)
            found[start : start + a_part] = unit_vectors(torch.from_numpy(np.ascontiguousarray(part))).numpy()
        return found

    def _mapped(self, X: Any) -> NDArray[Any]:
        if self.weight is None:
            return X.toarray() if sparse.issparse(X) else np.array(X)
        mapped: NDArray[Any] = self._times(X, self.weight)
        if self.inner is not None and self.outer is not None and self.bias is not None:
            hidden = np.maximum(self._times(X, self.inner) + self.bias.astype(X.dtype), 0)
            mapped = mapped + hidden @ self.outer.T.astype(X.dtype)
        return mapped

    def _times(self, X: Any, weight: Array) -> NDArray[Any]:
        if sparse.issparse(X):  # stays sparse
            return np.asarray(X @ weight.T.astype(X.dtype) - (weight @ self.offset).astype(X.dtype))
        centred: NDArray[Any] = X - self.offset.astype(X.dtype)
        return np.asarray(centred @ weight.T.astype(X.dtype))

    def module(self, *, resumed: bool = False) -> VectorMap:
        """As a network; or to learn more with, from rows that have lost their offset and scale already."""
        vector_map = VectorMap(self.dimensions, self.components, None if self.bias is None else len(self.bias))
        scale = self.scale if resumed else 1.0
        values = {"offset": self.offset * (not resumed), "weight": self.weight, "inner": self.inner}
        with torch.no_grad():
            for name, parameter in vector_map.named_parameters():
                value = values.get(name, getattr(self, name))
                if value is not None:
                    parameter.copy_(torch.from_numpy(value * (scale if name in ("weight", "inner") else 1.0)))
        return vector_map
