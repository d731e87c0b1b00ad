"""Vectors in clusters, as of images of many classes. A batch follows from its number: any process can make any of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.gallery.store import Vectors

OF_QUERIES, OF_CENTRES = -1, -2  # in place of the number of a batch
SEEDS = 2**32


@dataclass(frozen=True)
class Clusters:
    """Unit vectors around centres that are drawn evenly from the sphere.

    spread   the length of what is added to a centre, about; 1 is as long as the centre itself
    batch    how many are made at once
    """

    vectors: int
    dimensions: int
    clusters: int
    batch: int
    seed: int
    spread: float = 0.5

    @property
    def batches(self) -> int:
        return -(-self.vectors // self.batch)

    def numbers(self, batch: int) -> range:
        return range(batch * self.batch, min((batch + 1) * self.batch, self.vectors))

    def vectors_of(self, batch: int) -> Vectors:
        return self._drawn(batch, len(self.numbers(batch)))

    def queries(self, count: int) -> Vectors:
        """Others from the same clusters."""
        return self._drawn(OF_QUERIES, count)

    @staticmethod
    def id(number: int) -> str:
        return f"images/{number:010}.jpg"

    @staticmethod
    def metadata(number: int) -> dict[str, Any]:
        return {"number": number}

    def _drawn(self, stream: int, count: int) -> Vectors:
        random = np.random.default_rng([self.seed, stream % SEEDS])
        around = self._centres[random.integers(self.clusters, size=count)]
        noise = random.standard_normal((count, self.dimensions), np.float32)
        return _unit(around + self.spread / np.sqrt(self.dimensions) * noise)

    @cached_property
    def _centres(self) -> Vectors:
        random = np.random.default_rng([self.seed, OF_CENTRES % SEEDS])
        return _unit(random.standard_normal((self.clusters, self.dimensions), np.float32))


def _unit(vectors: NDArray[Any]) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
