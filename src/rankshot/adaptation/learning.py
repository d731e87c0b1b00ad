"""Updates of a map: a batch of rows, a loss of their vectors, a step of Adam."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rankshot.losses.ranking_loss import RankingLoss
from rankshot.losses.registry import LOSSES
from rankshot.models.vector_map import VectorMap

from .drawing import RowBatches
from .marks import Marks, batch_of, marked_loss
from .rows import Rows

Loss = Callable[[Tensor, Tensor], Tensor]


@contextmanager
def one_thread() -> Iterator[None]:
    """Updates are many small operations, which several threads do no faster; and where another process keeps a core busy,
    threads that wait for one another do them many times slower. A setting of the whole process, put back at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Recipe(NamedTuple):
    """How a map learns.

    loss            the name of a loss of rankshot's, or a function of embeddings (B, D) and labels (B,)
    learning_rate   of the first update; it falls to 0 along a cosine until `max_iter`
    """

    loss: str | Loss
    learning_rate: float
    max_iter: int
    batch_size: int
    seed: int


class Lessons(NamedTuple):
    """What there is to learn from.

    labels   (n,) int64; negative: the row is not learned from by its class
    """

    rows: Rows
    labels: Tensor
    marks: Marks | None = None


class Learner:
    """A map, and everything that its updates change. Update i depends on the seed and on i, and on the updates before."""

    def __init__(self, vector_map: VectorMap, lessons: Lessons, recipe: Recipe) -> None:
        self.map, self.lessons, self.recipe = vector_map, lessons, recipe
        known = lessons.labels >= 0
        self.classes = torch.full_like(lessons.labels, -1)
        if bool(known.any()):
            names, self.classes[known] = torch.unique(lessons.labels[known], return_inverse=True)
            self.batches = RowBatches(self.classes, recipe.batch_size, recipe.seed)
            self.loss = loss_for(recipe.loss, vector_map.weight.shape[0], len(names))
        self.of_marks, self.has_classes = RankingLoss(), bool(known.any())
        own = list(self.loss.parameters()) if self.has_classes and isinstance(self.loss, nn.Module) else []
        self.optimiser = Adam([*vector_map.parameters(), *own])
        self.done = 0

    def learn(self, until: int) -> float:
        """Updates up to this number; the mean of their losses."""
        total, start = 0.0, self.done
        while self.done < until:
            loss = self._loss(self.done)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step(self.recipe.learning_rate * _cosine(self.done / self.recipe.max_iter))
            total, self.done = total + loss.item(), self.done + 1
        return total / max(1, self.done - start)

    def _loss(self, number: int) -> Tensor:
        losses = []
        rows, labels, marks = self.lessons
        if self.has_classes:
            indices = self.batches.draw(number)
            losses.append(self.loss(self.map(rows.at(indices)), self.classes[indices]))
        if marks is not None and len(marks.anchors):
            batch = batch_of(marks, len(labels), self.recipe.seed, number, labels)
            anchors, items = (self.map(rows.at(indices)) for indices in (batch.anchors, batch.items))
            losses.append(marked_loss(anchors, items, batch, self.of_marks))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def vectors(self, indices: Any) -> Tensor:
        """(n, K) of these rows, as the map is now."""
        return self.map(self.lessons.rows.at(indices))  # type: ignore[no-any-return]


class Adam:
    """As `torch.optim.Adam`, whose import alone takes longer than most of the maps take to learn."""

    def __init__(self, parameters: Sequence[Tensor], betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.parameters, self.betas, self.steps = list(parameters), betas, 0
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One step by the gradients that are there, which are gone afterwards."""
        self.steps += 1
        first, second = (1 - beta**self.steps for beta in self.betas)
        for parameter, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            if parameter.grad is None:
                continue
            mean.lerp_(parameter.grad, 1 - self.betas[0])
            square.mul_(self.betas[1]).addcmul_(parameter.grad, parameter.grad, value=1 - self.betas[1])
            parameter.addcdiv_(mean, (square / second).sqrt_().add_(1e-8), value=-rate / first)
            parameter.grad = None


def _cosine(done: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def loss_for(loss: str | Loss, dimensions: int, classes: int) -> Loss:
    """By its name, for embeddings of so many dimensions, of so many classes; or as it is given."""
    if not isinstance(loss, str):
        return loss
    part = LOSSES[loss]
    known = {"dimensions": dimensions, "classes": classes}
    wanted = inspect.signature(part.make).parameters
    made: Loss = part(**{name: value for name, value in known.items() if name in wanted})
    return made
