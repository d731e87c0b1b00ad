"""The numbers of the drawing of the method: a small batch of glyphs, ranked by its pixels. Nothing is trained."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankshot.data.glyphs import draw
from rankshot.ranking import average_precision, loss_augmented_ranking, predicted_ranking, relevance_of, true_ranking
from rankshot.vectors import unit_vectors

CHARACTERS, DRAWERS = "λμβ", range(6, 10)  # of the data set `glyphs`: easy for people, not for pixels
QUERY = 9  # whose three rankings are drawn
EPSILON = 1.0  # the paper's
COARSE = 4  # pixels along a side that become one: a slight shift of a stroke should not make another character


class Ranking(NamedTuple):
    """What one query makes of the others.

    items      places in the batch, best first
    relevant   whether each is of the query's class
    score      F of this order, by the cosines
    precision  AP of this order
    """

    items: tuple[int, ...]
    relevant: tuple[bool, ...]
    score: float
    precision: float

    @property
    def loss(self) -> float:
        """L: what is lost against the ground truth, whose AP is 1."""
        return 1 - self.precision


class WorkedExample:
    """A batch in which every image is a query.

    images   (B, 28, 28) uint8, as `glyphs` has them
    labels   (B,)
    cosines  (B, B) of the embeddings, float64
    """

    def __init__(self) -> None:
        self.images: NDArray[np.uint8] = np.stack([draw(each, drawer, 0) for each in CHARACTERS for drawer in DRAWERS])
        self.labels = torch.arange(len(CHARACTERS)).repeat_interleave(len(DRAWERS))
        vectors = embedded(self.images)
        self.cosines = vectors @ vectors.T
        self.relevance, self.valid = relevance_of(self.labels)

    @cached_property
    def predicted(self) -> list[Ranking]:
        """One a query: by the cosines."""
        return self._rankings(predicted_ranking(self.cosines, self.relevance, self.valid))

    @cached_property
    def augmented(self) -> list[Ranking]:
        """One a query: the order of the largest F + epsilon L."""
        return self._rankings(loss_augmented_ranking(self.cosines, self.relevance, self.valid, epsilon=EPSILON))

    @cached_property
    def truth(self) -> list[Ranking]:
        """One a query: all that is relevant first."""
        return self._rankings(true_ranking(self.cosines, self.relevance, self.valid))

    @property
    def mean_precision(self) -> float:
        """mAP of the batch."""
        return float(average_precision(self.cosines, self.relevance, self.valid).mean())

    def _rankings(self, above: Tensor) -> list[Ranking]:
        """Of the integers of `rankshot.ranking`, (B, B): how many opponents stand above each item."""
        same_side = (self.relevance[:, :, None] == self.relevance[:, None, :]) & self.valid[:, None, :]
        better = self.cosines[:, None, :] > self.cosines[:, :, None]
        place = (same_side & better).sum(-1) + above  # within a side the order is that of the cosines
        order = place.masked_fill(~self.valid, len(place)).argsort(-1)[:, :-1]  # the query itself would be last
        n_relevant, n_irrelevant = self.relevance.sum(-1, True), (~self.relevance & self.valid).sum(-1, True)
        opponents = n_irrelevant.where(self.relevance, n_relevant)
        weights = (opponents - 2 * above) / (n_relevant * n_irrelevant) * self.valid  # as ranking/objectives.py has it
        scores = (weights * self.cosines).sum(-1)
        precisions = average_precision(-place.double(), self.relevance, self.valid)
        return [
            Ranking(tuple(items), tuple(relevant), score, precision)
            for items, relevant, score, precision in zip(
                order.tolist(), self.relevance.gather(-1, order).tolist(), scores.tolist(), precisions.tolist(), strict=True
            )
        ]


def embedded(images: NDArray[np.uint8]) -> Tensor:
    """(B, 28, 28) -> (B, 49) of length 1: blurred pixels, less those of the mean image, which tell nothing apart."""
    pixels = torch.from_numpy(images)[:, None].double() / 255
    blurred = torch.nn.functional.avg_pool2d(pixels, COARSE).flatten(1)
    return unit_vectors(blurred - blurred.mean(0))
