"""Ranking a batch in chunks of queries, so that no table of all pairs is ever alive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rankshot.ranking.inference import decouples
from rankshot.ranking.objectives import Objective, Settings, on_sides
from rankshot.ranking.pool import Counts
from rankshot.ranking.solvers import programme_values
from rankshot.ranking.sorted_pool import split
from rankshot.ranking.sorted_rows import BYTES_A_PAIR, Ranking, fits, objective_rows

VALUES_A_PAIR = 32  # about how many numbers one query and one item take while they are ranked


class Term(NamedTuple):
    """One of the objectives that a loss is the sum of.

    shifts   every query ranks once for each of these, with its relevant scores raised by it; none: once, as they are
    """

    weight: float
    settings: Settings
    shifts: tuple[float, ...] = ()

    @property
    def rankings(self) -> int:
        """Of a query."""
        return max(1, len(self.shifts))


@dataclass(frozen=True)
class Plan:
    """What ranks what, and how.

    labels       (Q,)  of the queries
    item_labels  (G,)  of the items
    ids          (Q,) of the queries and (G,) of the items: an item with the id of a query is not ranked by it
    counts       items of each side, for each query
    bound        no query has more relevant items than this
    terms        what is optimised, in sum
    """

    labels: Tensor
    item_labels: Tensor
    ids: tuple[Tensor, Tensor] | None
    counts: Counts
    bound: int
    terms: tuple[Term, ...]
    memory_budget: int

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """Of every query, all terms and shifts."""
        return tuple(
            Ranking(term.settings, shift, term.weight / term.rankings)
            for term in self.terms
            for shift in term.shifts or (0.0,)
        )

    def chunk(self, like: Tensor) -> int:
        """How many queries at a time, in the precision and on the device of `like`."""
        if fits(like, self.rankings, len(self.item_labels)):
            bytes_a_query = BYTES_A_PAIR * len(self.item_labels)
            if not all(decouples(term.settings.metric, term.settings.sign) for term in self.terms):
                bytes_a_query += 2 * max(1, self.bound) * (len(self.item_labels) + 1)
        else:
            bytes_a_query = max(map(self._values, self.terms)) * like.element_size()
        return max(1, self.memory_budget // bytes_a_query)

    def _values(self, term: Term) -> int:
        """That one query takes while it is ranked."""
        values = VALUES_A_PAIR * len(self.item_labels)
        if not decouples(term.settings.metric, term.settings.sign):
            values += programme_values(max(1, self.bound), len(self.item_labels))
        return values * term.rankings


class Ranked(NamedTuple):
    """losses (Q,); and, where asked for, the gradient of (scale * losses).sum() by the queries and by the items."""

    losses: Tensor
    by_queries: Tensor | None
    by_items: Tensor | None


def rank(queries: Tensor, items: Tensor, plan: Plan, scale: Tensor | None = None) -> Ranked:
    """Rank `items` (G, D) for every one of `queries` (Q, D), unit vectors both. With `scale` (Q,), gradients too."""
    with torch.autocast(queries.device.type, enabled=False):  # a backward pass may find itself inside one
        return _rank(queries, items, plan, scale)


def _rank(queries: Tensor, items: Tensor, plan: Plan, scale: Tensor | None) -> Ranked:
    losses = queries.new_empty(len(queries))
    by_queries = None if scale is None else torch.empty_like(queries)
    by_items = None if scale is None else torch.zeros_like(items)
    size = plan.chunk(queries)
    in_one_launch = fits(queries, plan.rankings, len(items))
    for start in range(0, len(queries), size):
        chunk = slice(start, start + size)
        scores = queries[chunk] @ items.T
        losses[chunk], weights = (_in_one_launch if in_one_launch else _in_steps)(scores, plan, chunk)
        if scale is None or by_queries is None or by_items is None:
            continue
        weights *= scale[chunk, None]
        torch.mm(weights, items, out=by_queries[chunk])
        by_items.addmm_(weights.T, queries[chunk])
    return Ranked(losses, by_queries, by_items)


def _in_one_launch(scores: Tensor, plan: Plan, chunk: slice) -> Objective:
    relevant = plan.labels[chunk, None] == plan.item_labels
    ids = None if plan.ids is None else (plan.ids[0][chunk], plan.ids[1])
    counts = Counts(*(side[chunk] for side in plan.counts))
    return objective_rows(scores, relevant, ids, counts, plan.bound, plan.rankings)


def _in_steps(scores: Tensor, plan: Plan, chunk: slice) -> Objective:
    """Term by term, each sorted anew: the plain way, for every device, precision and metric."""
    relevant = plan.labels[chunk, None] == plan.item_labels
    irrelevant = ~relevant
    left_out = None
    if plan.ids is not None:
        left_out = plan.ids[0][chunk, None] == plan.ids[1]
        relevant.masked_fill_(left_out, False)
        irrelevant.masked_fill_(left_out, False)
    objective = _sum(_objective(scores, relevant, irrelevant, left_out, plan, term) for term in plan.terms)
    if left_out is not None:
        objective.weights.masked_fill_(left_out, 0.0)
    return objective


def _objective(
    scores: Tensor, relevant: Tensor, irrelevant: Tensor, left_out: Tensor | None, plan: Plan, term: Term
) -> tuple[float, Objective]:
    """A term's weight, and its mean over the shifts. Weights of items are anything where one is on neither side."""
    if term.shifts:
        scores, relevant, irrelevant = _shifted(scores, relevant, irrelevant, term.shifts)
    sides = split(scores, relevant, irrelevant, plan.bound)
    if left_out is not None:  # it counts in no sum, whatever it weighs
        scores.view(term.rankings, *left_out.shape).masked_fill_(left_out, 0.0)
    means = (_mean_of_rankings(values, term.rankings) for values in on_sides(sides, scores, term.settings))
    return term.weight, Objective(*means)


def _sum(objectives: Iterable[tuple[float, Objective]]) -> Objective:
    """Of the first, which weighs 1, and what the others add to it."""
    (_, (loss, weights)), *others = objectives
    for weight, other in others:
        loss, weights = loss + weight * other.loss, weights.add_(other.weights, alpha=weight)
    return Objective(loss, weights)


def _shifted(scores: Tensor, relevant: Tensor, irrelevant: Tensor, shifts: Sequence[float]) -> tuple[Tensor, ...]:
    """(Q, G) each -> (len(shifts) * Q, G) each, shift by shift."""
    raised = relevant.to(scores.dtype)
    return (
        torch.cat([torch.add(scores, raised, alpha=shift) for shift in shifts]),
        relevant.repeat(len(shifts), 1),
        irrelevant.repeat(len(shifts), 1),
    )


def _mean_of_rankings(values: Tensor, rankings: int) -> Tensor:
    """(rankings * Q, …) -> (Q, …)."""
    return values if rankings == 1 else values.view(rankings, -1, *values.shape[1:]).mean(0)
