"""Ranking a batch in chunks of queries, so that no table of all pairs is ever alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from rankshot.ranking.inference import decouples
from rankshot.ranking.objectives import Objective, SideWeights, side_weights
from rankshot.ranking.pool import EMPTY, Counts
from rankshot.ranking.solvers import programme_values
from rankshot.ranking.sorted_pool import SortedPool, split
from rankshot.ranking.sorted_rows import BYTES_A_PAIR, Ranking, fits, objective_rows

VALUES_A_PAIR = 32  # about how many numbers one query and one item take while they are ranked


@dataclass(frozen=True)
class Plan:
    """What ranks what, and how.

    labels       (Q,)  of the queries
    item_labels  (G,)  of the items
    ids          (Q,) of the queries and (G,) of the items: an item with the id of a query is not ranked by it
    counts       items of each side, for each query
    bound        no query has more relevant items than this
    rankings     of every query, whose objectives are added up
    """

    labels: Tensor
    item_labels: Tensor
    ids: tuple[Tensor, Tensor] | None
    counts: Counts
    bound: int
    rankings: tuple[Ranking, ...]
    memory_budget: int

    def chunk(self, like: Tensor) -> int:
        """How many queries at a time, in the precision and on the device of `like`."""
        items, places = len(self.item_labels), max(1, self.bound)
        decoupled = all(decouples(ranking.chosen.metric, ranking.chosen.sign) for ranking in self.rankings)
        if fits(like, self.rankings, items):
            bytes_a_query = BYTES_A_PAIR * items + (0 if decoupled else 2 * places * (items + 1))
        else:
            values = VALUES_A_PAIR * items + (0 if decoupled else programme_values(places, items))
            bytes_a_query = values * like.element_size()
        return max(1, self.memory_budget // bytes_a_query)


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
    """One ranking after another: the plain way, for every device, precision and metric.

    Neither a shift of all relevant scores nor another epsilon changes the order within a side: one sort serves them all.
    """
    relevant = plan.labels[chunk, None] == plan.item_labels
    irrelevant = ~relevant
    left_out = None
    if plan.ids is not None:
        left_out = (plan.ids[0][chunk, None] == plan.ids[1]) | (plan.ids[1] == EMPTY)
        relevant.masked_fill_(left_out, False)
        irrelevant.masked_fill_(left_out, False)
    return objective_of(scores, relevant, irrelevant, left_out, plan.rankings, plan.bound)


def objective_of(
    scores: Tensor,
    relevant: Tensor,
    irrelevant: Tensor,
    left_out: Tensor | None,
    rankings: Sequence[Ranking],
    bound: int | None = None,
) -> Objective:
    """The sum of several rankings' objectives, for scores (Q, G) and the items on each side of a query, (Q, G) bool both.

    left_out   (Q, G) bool, the items on neither side; None: there are none
    bound      no query has more relevant items than this
    """
    sides = split(scores, relevant, irrelevant, bound)
    total, *others = (_shifted(sides, ranking) for ranking in rankings)
    for other in others:
        for sum_so_far, more in zip(total, other, strict=True):
            sum_so_far.add_(more)
    weights = sides.to_items(total.relevant, total.irrelevant)
    if left_out is not None:  # what is not ranked weighs nothing
        weights.masked_fill_(left_out, 0.0)
    return Objective((weights * scores).sum(-1) + total.constant, weights)


def _shifted(sides: SortedPool, ranking: Ranking) -> SideWeights:
    """The share of one ranking, with all relevant scores raised by its shift; as weights on the scores as they are."""
    chosen, shift, share = ranking
    raised = replace(sides, relevant=sides.relevant + shift) if shift else sides
    of_relevant, of_irrelevant, constant = side_weights(raised, chosen)
    if shift:
        place = torch.arange(of_relevant.shape[1], device=of_relevant.device)
        constant = constant + shift * of_relevant.where(place < sides.n_relevant, 0.0).sum(-1)
    return SideWeights(share * of_relevant, share * of_irrelevant, share * constant)
