"""The objective on a GPU: rows of any length are sorted once, and one program a query does the rest.

The same mathematics as `solvers` and `objectives`, in the same order of ties. One sort serves every term and every shift
of an objective: neither changes an order within a side. A program parts its sorted row into the two sides. Then, for each
ranking, the irrelevant items find in blocks how many relevant ones stand above them: m never falls, so the m of the last
item of a block is the largest that its other items need to try. Sums of the metric's steps come from a table of one number
for each place instead of one for each pair (`FORMS`).

Where items of one ranking or more do not decouple (another sign or metric), the dynamic programme does all of them, both
signs in one launch, for small batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rankshot.kernels import kernels_work, on

from .inference import decouples
from .metrics import AP, AUC, NDCG, RECIPROCAL_RANK, Metric, precision_metric
from .objectives import Objective, Settings
from .pool import Counts
from .sorted_pool import counting

BYTES_A_PAIR = 64  # of one query and one item while they are ranked, sorting included
MOST_IN_PROGRAMME = 512  # items, where they do not decouple
MOST_KEPT = 16
FEW_RELEVANT = 64  # up to which large blocks of items are the fastest
# Which sums of steps of a metric are differences of one table: of "ap" all but a fraction; of "first" only k = 1 counts.
FORMS: dict[Metric, str] = {
    AP: "ap",
    NDCG: "difference",
    AUC: "difference",
    RECIPROCAL_RANK: "first",
    precision_metric(1): "first",
}
_kept: dict[tuple[Any, ...], tuple[Tensor, ...]] = {}
_in_graphs: dict[tuple[Any, ...], tuple[Tensor, ...]] = {}


class Ranking(NamedTuple):
    """One of the rankings of a query that an objective is the sum of.

    shift   by which all relevant scores are raised
    share   what it weighs in the sum
    """

    chosen: Settings
    shift: float
    share: float


Rankings = Sequence[Ranking]


def fits(like: Tensor, rankings: Rankings, items: int) -> bool:
    """Whether `objective_rows` can do it, in the precision and on the device of `like`."""
    first = rankings[0].chosen
    alike = all((x.chosen.framework, x.chosen.metric) == (first.framework, first.metric) for x in rankings)
    if not alike or like.dtype != torch.float32 or not kernels_work(like.device):
        return False
    if all(decouples(x.chosen.metric, x.chosen.sign) for x in rankings):
        return first.metric in FORMS
    return items <= MOST_IN_PROGRAMME


def objective_rows(
    scores: Tensor, relevant: Tensor, ids: tuple[Tensor, Tensor] | None, counts: Counts, bound: int, rankings: Rankings
) -> Objective:
    """(Q, G) float32, which is overwritten, and a mask -> (Q,), (Q, G): the sum over all rankings.

    ids     (Q,) of the queries and (G,) of the items: an item with the id of the query is not ranked
    counts  items of each side
    bound   no query has more relevant items than this
    """
    from . import sorted_rows_kernel as kernels

    queries, items = scores.shape
    places = max(1, min(bound, items))
    first = rankings[0].chosen
    decoupled = all(decouples(x.chosen.metric, x.chosen.sign) for x in rankings)
    values, columns = scores.sort(dim=-1, descending=True, stable=True)
    constants = _constants(first.metric, items, places, tuple(rankings), decoupled, scores.device)
    P, N = (side.clamp(min=1).to(scores.dtype)[:, None] for side in counts)
    scale = first.metric.scale(P, N, counting(places, scores)).expand(queries, 1).contiguous()
    loss = scores.new_empty(queries)
    numbers = scores.new_empty(queries, 2 * places + items)
    whole = torch.empty(queries, places + items, dtype=torch.int32, device=scores.device)
    rows = (values, columns, relevant.view(torch.uint8), *(ids or (columns, columns)))
    sizes = (items, places, len(rankings), places.bit_length(), items.bit_length())
    flags = (ids is not None, first.framework == "ssvm")
    with on(scores):
        if decoupled:
            sums = scores.new_empty(queries, places + 1, dtype=torch.float64)
            form = ("ap", "difference", "first").index(FORMS[first.metric])
            block, span, warps = _shape(items, places)
            kernels.decoupled[(queries,)](
                *(*rows, sums, numbers, whole, scale, *constants, scores, loss, *sizes, *flags, form, block, span),
                num_warps=warps,
            )
        else:
            came_from = torch.empty(queries, places, items + 1, dtype=torch.int16, device=scores.device)
            kernels.programme[(queries,)](
                *(*rows, numbers, whole, scale, *constants, came_from, scores, loss, *sizes, *flags),
                max(32, _power_of_2(items + 1)),
                num_warps=4,
            )
    return Objective(loss, scores)


def _shape(items: int, places: int) -> tuple[int, int, int]:
    """Irrelevant items at a time, relevant items at a time, and the warps that share them: what an H200 does fastest.

    With many relevant items every item of a block tries as many m as the block spans, so that small blocks try fewer.
    """
    width = max(32, _power_of_2(items))
    if places > FEW_RELEVANT:
        return min(256, width), min(128, _power_of_2(places)), 2
    block = min(max(512, width // 16), 4096, width)
    return block, max(16, _power_of_2(places)), max(2, block // 256)


def _power_of_2(number: int) -> int:
    """The least that is no smaller."""
    return 1 << (number - 1).bit_length()


def _constants(*key: Any) -> tuple[Tensor, ...]:
    """What does not depend on the batch, kept for the next one of this size; for ever, where a CUDA graph reads it."""
    if key in _in_graphs:
        return _in_graphs[key]
    constants = _kept.get(key) or _made(*key)
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        if key in _kept:  # those made now are the graph's own
            _in_graphs[key] = constants
        return constants
    if len(_kept) >= MOST_KEPT:
        _kept.clear()
    _kept[key] = constants
    return constants


def _made(
    metric: Metric, items: int, places: int, rankings: tuple[Ranking, ...], decoupled: bool, device: torch.device
) -> tuple[Tensor, ...]:
    """The rankings (n, 4), and the metric's sums of steps as a pair of tables; or its losses (places, items + 1)."""
    settings = [(x.chosen.sign * x.chosen.epsilon, x.chosen.alpha, x.shift, x.share) for x in rankings]
    # By fills: nothing may be copied from the host while a graph is recorded.
    chosen = torch.stack([torch.full((), number, device=device) for row in settings for number in row])
    k = counting(items, torch.empty((), dtype=torch.float64, device=device))
    n = torch.cat([k.new_zeros(1), k])
    if not decoupled:
        return chosen, metric.loss(k[:places, None], n).float().contiguous()
    one = k.new_ones(())
    if FORMS[metric] == "first":
        return chosen, torch.cat([k.new_zeros(1), metric.step(one, k)]).float(), metric.loss(one, n).float()
    # At x: the sum of 1 / j for j < x, or what x - 1 items above cost the first relevant one.
    grown = (1 / k).cumsum(0) if FORMS[metric] == "ap" else metric.loss(one, k)
    summed = torch.cat([k.new_zeros(2), grown])
    high = summed.float()
    return chosen, high, (summed - high.double()).float()
