"""Three exact solvers of loss-augmented inference, all of the same problem: sides in, n_k (Q, R) out.

In units of P * N / 2 the objective F + sign * eps * L of a ranking is, up to a constant, a sum over the pairs (k, n) in
which the n-th irrelevant item stands above the k-th relevant one, of

    pair(k, n) = t_n - s_k + pull * step(k, n),        pull = sign * eps * scale * P * N / 2,

with s and t the sorted scores of the two sides. A solver finds the interleaving with the largest sum. When `pair` falls
with n (a concave metric, positive sign) the irrelevant items decouple: item n stands below exactly the first m relevant
ones, where m minimises cost(m, n) = pair(1, n) + … + pair(m, n), and these m never fall with n by themselves.

- `sweep`      decoupled; tries every m for every n, O(P N), one m after the other. The fastest while P is small.
- `bisection`  decoupled; finds for every k where m reaches k, O(P log P log N).
- `programme`  any metric, any sign; dynamic programme over k with a running maximum along n, O(P N).

Ties: of equally good rankings all return the one with more mistakes, as standard inference does: the last relevant
item as low as possible, then the one before it, and so on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .checks import may_look
from .metrics import Elementwise
from .sorted_pool import SortedPool, counting


def sweep(sides: SortedPool, pull: Tensor, step: Elementwise) -> Tensor:
    """Every number m of relevant items above, for every irrelevant item at once.

    Few passes over (Q, G), in buffers that are used again, without bool tensors: this is where small batches spend their
    time, and most of it would go into fresh memory.
    """
    places = sides.relevant.shape[1]
    s, t = _relative(sides)
    steps = step(counting(places, t)[:, None], counting(t.shape[1], t)).cumsum(0)
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


def bisection(sides: SortedPool, pull: Tensor, step: Elementwise) -> Tensor:
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


def programme(sides: SortedPool, pull: Tensor, step: Elementwise) -> Tensor:
    """h_k(n) = g_k(n) + max of h_(k-1) up to n, then back along the maxima; g_k(n) = pair(k, 1) + … + pair(k, n).

    Where the maxima came from is kept for one stretch of k at a time, and found again from the h before the stretch when
    the way back reaches it: memory for the square root of P rows instead of P.
    """
    queries, places = sides.relevant.shape
    t = sides.irrelevant
    items = t.shape[1]
    counted, n = counting(places, t), counting(items, t)

    def advance(best: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """From the running maximum of h_(k-1) to that of h_k, and where it is; of equal values the last."""
        pairs = (t - sides.relevant[:, k - 1 : k]).addcmul_(pull, step(counted[k - 1], n))
        best = best.clone()
        best[:, 1:] += pairs.cumsum_(-1)  # inf past a query's end: n goes to the very end there, and has no say
        values, where = best.cummax(-1)
        return values, where.int()

    size = stretch(places)
    stretches = [range(first, min(first + size, places + 1)) for first in range(1, places + 1, size)]
    starts = [t.new_zeros(queries, items + 1)]
    for ks in stretches[:-1]:
        best = starts[-1]
        for k in ks:
            best, _ = advance(best, k)
        starts.append(best)

    above_relevant = torch.empty(queries, places, dtype=torch.int64, device=t.device)
    above = torch.full((queries, 1), items, dtype=torch.int64, device=t.device)
    for ks, best in zip(reversed(stretches), reversed(starts), strict=True):
        came_from = []
        for k in ks:
            best, where = advance(best, k)
            came_from.append(where)
        for k, where in zip(reversed(ks), reversed(came_from), strict=True):
            above = where.gather(-1, above).long()
            above_relevant[:, k - 1 : k] = above
    return above_relevant


def stretch(places: int) -> int:
    """How many k the dynamic programme keeps at a time; up to 32 all of them, so that nothing is computed twice."""
    return max(32, math.isqrt(places))


def programme_values(places: int, items: int) -> int:
    """About how many numbers `programme` keeps for one query."""
    return (stretch(places) + -(-places // stretch(places)) + 6) * (items + 1)


def _relative(sides: SortedPool) -> tuple[Tensor, Tensor]:
    """Sums of s_1 … s_m (Q, R), and t (Q, G), relative to s_1: only differences count, and large sums would lose them."""
    origin = sides.relevant[:, :1]
    return (sides.relevant - origin).cumsum(-1), sides.irrelevant - origin


def _count_below(above_irrelevant: Tensor, sides: SortedPool) -> Tensor:
    """n_k from m, which never falls along a row: how many irrelevant items have m < k."""
    k = counting(sides.relevant.shape[1], sides.relevant).expand_as(sides.relevant).contiguous()
    return torch.searchsorted(above_irrelevant, k)


def _halvings(ranges: Tensor, most: int) -> int:
    """How often to halve until every range is a point."""
    return (int(ranges.max()) if may_look(ranges) else most).bit_length()
