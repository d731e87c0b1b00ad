"""Four exact solvers of loss-augmented inference, all of the same problem: sides in, n_k (Q, R) out.

In units of P * N / 2 the objective F + sign * eps * L of a ranking is, up to a constant, a sum over the pairs (k, n) in
which the n-th irrelevant item stands above the k-th relevant one, of

    pair(k, n) = t_n - s_k + pull * step(k, n),        pull = sign * eps * scale * P * N / 2,

with s and t the sorted scores of the two sides. A solver finds the interleaving with the largest sum. When `pair` falls
with n (a concave metric, positive sign) the irrelevant items decouple: item n stands below exactly the first m relevant
ones, where m minimises cost(m, n) = pair(1, n) + … + pair(m, n), and these m never fall with n by themselves.

- `sweep`      decoupled; tries every m for every n, O(P N), one m after the other. The fastest on a CPU while P is small.
- `table`      the same with many m at once: a few large operations, as accelerators like it.
- `bisection`  decoupled; finds for every k where m reaches k, O(P log P log N).
- `programme`  any metric, any sign; dynamic programme over k with a running maximum along n, O(P N) with a table of that
               size for each query.

Ties: of equally good rankings all return the one with more mistakes, as standard inference does: the last relevant
item as low as possible, then the one before it, and so on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .checks import may_look
from .metrics import Elementwise
from .sides import Sides

TABLE_ELEMENTS = 2**22


def sweep(sides: Sides, pull: Tensor, step: Elementwise) -> Tensor:
    """Every number m of relevant items above, for every irrelevant item at once.

    Few passes over (Q, G), in buffers that are used again, without bool tensors: this is where small batches spend their
    time, and most of it would go into fresh memory.
    """
    t = sides.irrelevant
    places = sides.relevant.shape[1]
    steps = step(_counting(places, t)[:, None], _counting(t.shape[1], t)).cumsum(0)
    s = sides.relevant.cumsum(-1)
    best, above_irrelevant = torch.zeros_like(t), torch.zeros_like(t)
    cost, cheapest = torch.empty_like(t), torch.empty_like(t)
    for m in range(1, places + 1):
        torch.mul(pull, steps[m - 1], out=cost)
        cost.sub_(s[:, m - 1 : m]).add_(t, alpha=m)  # inf past a query's end: it never wins
        torch.minimum(best, cost, out=cheapest)
        improved = best.gt_(cheapest).mul_(m)
        torch.maximum(above_irrelevant, improved, out=above_irrelevant)
        best, cheapest = cheapest, best
    return _count_below(above_irrelevant, sides)


def table(sides: Sides, pull: Tensor, step: Elementwise) -> Tensor:
    """As `sweep`, with as many m at a time as a table of TABLE_ELEMENTS holds."""
    t = sides.irrelevant
    places = sides.relevant.shape[1]
    m = _counting(places, t)[:, None, None]
    steps = step(m, _counting(t.shape[1], t)).cumsum(0)
    s = sides.relevant.cumsum(-1).T[:, :, None]
    best, above_irrelevant = torch.zeros_like(t), torch.zeros_like(t)
    block = max(1, TABLE_ELEMENTS // t.numel())
    for some in (slice(start, start + block) for start in range(0, places, block)):
        cheapest, which = (pull * steps[some] - s[some]).addcmul_(m[some], t).min(0)  # of equals the first
        above_irrelevant = torch.where(cheapest < best, which + (some.start + 1), above_irrelevant)
        best = torch.minimum(best, cheapest)
    return _count_below(above_irrelevant, sides)


def bisection(sides: Sides, pull: Tensor, step: Elementwise) -> Tensor:
    """Divide and conquer over k. Call n_k the number of irrelevant items with m < k, which is what k has above it.

    Once n_lo and n_hi of a span of k are known, the items between them have lo <= m < hi. So n of the middle k is found
    by bisecting those items for the last one whose cheapest m of the span lies below the middle. The spans of one level
    are one regular tensor, whatever the data.
    """
    queries, relevant = sides.relevant.shape
    irrelevant = sides.irrelevant.shape[1]
    levels = relevant.bit_length()
    width = 1 << levels  # spans of m = 0 … width - 1; no query has that many relevant items
    s = torch.nn.functional.pad(sides.relevant, (1, width - relevant - 1), value=-torch.inf)  # s[:, k] is the k-th
    k = torch.arange(width, device=s.device, dtype=s.dtype)
    above = torch.zeros(queries, width + 1, dtype=torch.int64, device=s.device)
    above[:, -1:] = sides.n_irrelevant

    for level in range(levels):
        spans = 1 << level
        in_spans = (queries, spans, width // spans)
        middle = width // spans // 2
        span_s, span_k = s.view(in_spans), k.view(in_spans[1:])
        low = above[:, : -1 : width // spans].clone()
        high = above[:, width // spans :: width // spans].clone()
        for _ in range(_halvings(high - low, irrelevant)):
            probe = (low + high + 1) // 2
            item = probe.clamp(min=1)  # an empty range may probe 0; what is found then changes nothing
            t = sides.irrelevant.gather(-1, item - 1).unsqueeze(-1)
            n = item.unsqueeze(-1).to(s.dtype)
            pairs = (t - span_s).addcmul_(pull.unsqueeze(-1), step(span_k, n))
            pairs[..., 0] = 0.0  # costs count from the first m of the span
            cost = pairs.cumsum_(-1)
            below_middle = cost[..., :middle].amin(-1) <= cost[..., middle:].amin(-1)
            low = torch.where(below_middle, probe, low)
            high = torch.where(below_middle, high, probe - 1)
        above[:, middle : -1 : width // spans] = low
    return above[:, 1 : relevant + 1].contiguous()


def programme(sides: Sides, pull: Tensor, step: Elementwise) -> Tensor:
    """h_k(n) = g_k(n) + max of h_(k-1) up to n, then back along the maxima; g_k(n) = pair(k, 1) + … + pair(k, n)."""
    queries, relevant = sides.relevant.shape
    t = sides.irrelevant
    irrelevant = t.shape[1]
    counted, n = _counting(relevant, t), _counting(irrelevant, t)
    best = t.new_zeros(queries, irrelevant + 1)
    came_from = torch.empty(relevant, queries, irrelevant + 1, dtype=torch.int32, device=t.device)
    for k in range(1, relevant + 1):
        s = sides.relevant[:, k - 1 : k]
        pairs = (t - s).addcmul_(pull, step(counted[k - 1], n))
        pairs = pairs.where(sides.n_relevant >= k, 0.0)  # past a query's end nothing is gained or lost
        best[:, 1:] += pairs.cumsum_(-1)
        best, latest = best.cummax(-1)  # of equal values the last, so that a tie is a mistake
        came_from[k - 1] = latest
    above_relevant = torch.empty(queries, relevant, dtype=torch.int64, device=t.device)
    above = torch.full((queries, 1), irrelevant, dtype=torch.int64, device=t.device)
    for k in range(relevant, 0, -1):
        above = came_from[k - 1].gather(-1, above).long()
        above_relevant[:, k - 1 : k] = above
    return above_relevant


def _count_below(above_irrelevant: Tensor, sides: Sides) -> Tensor:
    """n_k from m, which never falls along a row: how many irrelevant items have m < k."""
    k = _counting(sides.relevant.shape[1], sides.relevant).expand_as(sides.relevant).contiguous()
    return torch.searchsorted(above_irrelevant, k)


def _counting(last: int, like: Tensor) -> Tensor:
    """1, 2, … last."""
    return torch.arange(1, last + 1, device=like.device, dtype=like.dtype)


def _halvings(ranges: Tensor, most: int) -> int:
    """How often to halve until every range is a point."""
    return (int(ranges.max()) if may_look(ranges) else most).bit_length()
