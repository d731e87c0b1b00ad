"""The kernels of `sorted_rows`, in Triton: one program a query, from its sorted scores to the weights of its items.

What other lanes of a program have written is read only after a barrier: `tl.debug_barrier` is `__syncthreads`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from . import pool

# How the sums of a metric's steps are found: see `sorted_rows.FORMS`.
EMPTY = tl.constexpr(pool.EMPTY)
AP, DIFFERENCE, FIRST = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def decoupled(
    values,
    columns,
    relevant,
    query_ids,
    item_ids,
    sums,
    numbers,
    counts,
    scale,
    rankings,
    high,
    low,
    weights,
    loss,
    items,
    places,
    n_rankings,
    halvings_rel,
    halvings_irr,
    HAS_IDS: tl.constexpr,
    IS_SSVM: tl.constexpr,
    FORM: tl.constexpr,
    BLOCK: tl.constexpr,
    PLACES: tl.constexpr,
):
    """A concave metric, positive sign: every irrelevant item finds by itself how many relevant ones stand above it.

    values, columns  (Q, G)  the scores of each row, best first, and where they stood; both are overwritten
    relevant         (Q, G)  bytes, in the order in which the items came
    query_ids        (Q,)    and item_ids (G,): an item with the id of the query is the same image, and not ranked
    sums             (Q, places + 1) float64, numbers (Q, 2 places + G) float32, counts (Q, places + G) int32: to work in
    rankings         (n, 4)  epsilon, alpha, shift and share of each ranking of a query
    """
    query = tl.program_id(0).to(tl.int64)
    values += query * items
    columns += query * items
    weights += query * items
    numbers += query * (2 * places + items)
    s_of, weight_of, total_of = numbers, numbers + places, numbers + 2 * places
    counts += query * (places + items)
    item_of, m_of = counts, counts + places
    sums += query * (places + 1)
    mine = tl.load(query_ids + query)
    n_rel, n_irr = _part(
        values, columns, relevant + query * items, mine, item_ids, s_of, item_of, weights, items, HAS_IDS, BLOCK
    )
    value = 0.0
    if (n_rel > 0) & (n_irr > 0):
        origin = tl.load(s_of)
        _add_up(s_of, sums, origin, n_rel, PLACES)
        factor = tl.load(scale + query)
        for at in range(n_rankings):
            epsilon, alpha = tl.load(rankings + 4 * at), tl.load(rankings + 4 * at + 1)
            shift, part = tl.load(rankings + 4 * at + 2), tl.load(rankings + 4 * at + 3)
            pairs = n_rel.to(tl.float32) * n_irr.to(tl.float32)
            pull = epsilon / 2 * factor * pairs
            per_pair = part / pairs if IS_SSVM else part / epsilon / pairs
            m_low = 0
            for start in range(0, n_irr, BLOCK):
                n = start + 1 + tl.arange(0, BLOCK)
                known = n <= n_irr
                t = tl.load(values + n - 1, mask=known, other=0.0)
                x = t - origin - shift
                base = tl.load(sums + m_low)
                # The last item of the block says how far m goes in it, since m never falls.
                m_high = m_low
                last = tl.minimum(start + BLOCK, n_irr)
                x_last = tl.load(values + last - 1) - origin - shift
                best_last = 0.0
                for first in range(m_low + 1, n_rel + 1, PLACES):
                    count = first + tl.arange(0, PLACES)
                    tried = count <= n_rel
                    added = (tl.load(sums + count, mask=tried, other=0.0) - base).to(tl.float32)
                    cost = (count - m_low) * x_last - added
                    cost += pull * _steps(high, low, m_low, count, last, tried, FORM)
                    cost = tl.where(tried, cost, float("inf"))
                    cheapest = tl.min(cost, 0)
                    which = tl.min(tl.where(cost == cheapest, count, 2147483647), 0)  # of equals the first
                    m_high = tl.where(cheapest < best_last, which, m_high)
                    best_last = tl.minimum(best_last, cheapest)
                m = tl.full((BLOCK,), 0, dtype=tl.int32) + m_low
                best = tl.zeros((BLOCK,), dtype=tl.float32)
                for count in range(m_low + 1, m_high + 1):
                    added = (tl.load(sums + count) - base).to(tl.float32)
                    cost = (count - m_low) * x - added
                    cost += pull * _steps(high, low, m_low, count, n, known, FORM)
                    m = tl.where(cost < best, count, m)
                    best = tl.minimum(best, cost)
                m = tl.associative_scan(m, 0, _larger)  # rounding may not undo what is true of the exact numbers
                tl.store(m_of + n - 1, m, mask=known)
                m_low = m_high
                if IS_SSVM:  # against the truth: all relevant items above
                    reference = tl.full((BLOCK,), 0, dtype=tl.int32) + n_rel
                else:
                    reference = _above_irrelevant(s_of, t, shift, n_rel, halvings_rel, BLOCK)
                weight = (alpha - 1) * n_rel + 2 * (reference.to(tl.float32) - alpha * m.to(tl.float32))
                weight = tl.where(known, per_pair * weight, 0.0)
                value += tl.sum(weight * t, 0)
                if at > 0:
                    weight += tl.load(total_of + n - 1, mask=known, other=0.0)
                tl.store(total_of + n - 1, weight, mask=known)
            tl.debug_barrier()
            for start in range(0, n_rel, PLACES):
                k = start + 1 + tl.arange(0, PLACES)
                known = k <= n_rel
                s = tl.load(s_of + k - 1, mask=known, other=0.0)
                above = _fewer(m_of, k, n_irr, halvings_irr, PLACES)
                if IS_SSVM:
                    reference = tl.full((PLACES,), 0, dtype=tl.int32)
                    cost = _loss(high, low, k, above, known, FORM)
                    value += part * epsilon * factor * tl.sum(tl.where(known, cost, 0.0), 0)
                else:
                    reference = _above_relevant(values, s, shift, n_irr, halvings_irr, PLACES)
                weight = (alpha - 1) * n_irr + 2 * (reference.to(tl.float32) - alpha * above.to(tl.float32))
                weight = tl.where(known, per_pair * weight, 0.0)
                value += tl.sum(weight * (s + shift), 0)
                if at > 0:
                    weight += tl.load(weight_of + k - 1, mask=known, other=0.0)
                tl.store(weight_of + k - 1, weight, mask=known)
            tl.debug_barrier()
    tl.store(loss + query, value)
    _to_items(columns, item_of, total_of, weight_of, weights, n_rel, n_irr, BLOCK)


@triton.jit
def programme(
    values,
    columns,
    relevant,
    query_ids,
    item_ids,
    numbers,
    counts,
    scale,
    rankings,
    losses,
    came_from,
    weights,
    loss,
    items,
    places,
    n_rankings,
    halvings_rel,
    halvings_irr,
    HAS_IDS: tl.constexpr,
    IS_SSVM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Any metric, either sign: the dynamic programme of `solvers`, a row at a time. BLOCK is more than the items."""
    query = tl.program_id(0).to(tl.int64)
    values += query * items
    columns += query * items
    weights += query * items
    numbers += query * (2 * places + items)
    s_of, weight_of, total_of = numbers, numbers + places, numbers + 2 * places
    counts += query * (places + items)
    item_of, n_of = counts, counts + places
    came_from += query * places * (items + 1)
    mine = tl.load(query_ids + query)
    n_rel, n_irr = _part(
        values, columns, relevant + query * items, mine, item_ids, s_of, item_of, weights, items, HAS_IDS, BLOCK
    )
    value = 0.0
    if (n_rel > 0) & (n_irr > 0):
        origin = tl.load(s_of)
        factor = tl.load(scale + query)
        pairs = n_rel.to(tl.float32) * n_irr.to(tl.float32)
        n = tl.arange(0, BLOCK)  # irrelevant items above a relevant one
        known = n <= n_irr
        t = tl.load(values + n - 1, mask=known & (n > 0), other=0.0)
        x = tl.where(known & (n > 0), t - origin, 0.0).to(tl.float64)
        above_all = tl.cumsum(x, 0)
        for at in range(n_rankings):
            epsilon, alpha = tl.load(rankings + 4 * at), tl.load(rankings + 4 * at + 1)
            shift, part = tl.load(rankings + 4 * at + 2), tl.load(rankings + 4 * at + 3)
            pull = epsilon / 2 * factor * pairs  # epsilon has the sign of the update
            per_pair = part / pairs if IS_SSVM else part / epsilon / pairs
            best = tl.zeros((BLOCK,), dtype=tl.float64)
            for k in range(1, n_rel + 1):
                s = (tl.load(s_of + k - 1) - origin + shift).to(tl.float64)
                cost = tl.load(losses + (k - 1) * (items + 1) + n, mask=known, other=0.0)
                best = best + above_all - n * s + (pull * cost).to(tl.float64)
                best = tl.where(known, best, float("-inf"))
                best, where = tl.associative_scan((best, n), 0, _last_best)
                tl.store(came_from + (k - 1) * (items + 1) + n, where.to(tl.int16), mask=known)
            tl.debug_barrier()
            above = n_irr
            for back in range(n_rel):
                k = n_rel - back
                above = tl.load(came_from + (k - 1) * (items + 1) + above).to(tl.int32)
                tl.store(n_of + k - 1, above)
            tl.debug_barrier()

            is_item = known & (n > 0)
            m = _fewer(n_of, n, n_rel, halvings_rel, BLOCK)
            if IS_SSVM:
                reference = tl.full((BLOCK,), 0, dtype=tl.int32) + n_rel
            else:
                reference = _above_irrelevant(s_of, t, shift, n_rel, halvings_rel, BLOCK)
            weight = (alpha - 1) * n_rel + 2 * (reference.to(tl.float32) - alpha * m.to(tl.float32))
            weight = tl.where(is_item, per_pair * weight, 0.0)
            value += tl.sum(weight * t, 0)
            if at > 0:
                weight += tl.load(total_of + n - 1, mask=is_item, other=0.0)
            tl.store(total_of + n - 1, weight, mask=is_item)

            is_place = n < n_rel  # of the relevant items, counted from 0
            s = tl.load(s_of + n, mask=is_place, other=0.0)
            above_each = tl.load(n_of + n, mask=is_place, other=0)
            if IS_SSVM:
                reference = tl.full((BLOCK,), 0, dtype=tl.int32)
                cost = tl.load(losses + n * (items + 1) + above_each, mask=is_place, other=0.0)
                value += part * epsilon * factor * tl.sum(cost, 0)
            else:
                reference = _above_relevant(values, s, shift, n_irr, halvings_irr, BLOCK)
            weight = (alpha - 1) * n_irr + 2 * (reference.to(tl.float32) - alpha * above_each.to(tl.float32))
            weight = tl.where(is_place, per_pair * weight, 0.0)
            value += tl.sum(weight * (s + shift), 0)
            if at > 0:
                weight += tl.load(weight_of + n, mask=is_place, other=0.0)
            tl.store(weight_of + n, weight, mask=is_place)
            tl.debug_barrier()
    tl.store(loss + query, value)
    _to_items(columns, item_of, total_of, weight_of, weights, n_rel, n_irr, BLOCK)


@triton.jit
def _part(
    values,
    columns,
    relevant,
    mine,
    item_ids,
    s_of,
    item_of,
    weights,
    items,
    HAS_IDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The relevant items of a sorted row into a list of their own; the irrelevant ones move up. How many of each.

    What is not ranked weighs 0.
    """
    n_rel, n_irr = 0, 0
    for start in range(0, items, BLOCK):
        place = start + tl.arange(0, BLOCK)
        known = place < items
        score = tl.load(values + place, mask=known, other=0.0)
        column = tl.load(columns + place, mask=known, other=0)
        is_rel = tl.load(relevant + column, mask=known, other=0) != 0
        ranked = known
        if HAS_IDS:
            item_id = tl.load(item_ids + column, mask=known, other=0)
            ranked = known & (item_id != mine) & (item_id != EMPTY)
            tl.store(weights + column, 0.0, mask=known & (ranked == 0))
        rel, irr = ranked & is_rel, ranked & (is_rel == 0)
        k = n_rel - 1 + tl.cumsum(rel.to(tl.int32), 0)
        n = n_irr - 1 + tl.cumsum(irr.to(tl.int32), 0)
        tl.debug_barrier()  # all of the block is read before any of it moves
        tl.store(s_of + k, score, mask=rel)
        tl.store(item_of + k, column.to(tl.int32), mask=rel)
        tl.store(values + n, score, mask=irr)
        tl.store(columns + n, column, mask=irr)
        n_rel += tl.sum(rel.to(tl.int32), 0)
        n_irr += tl.sum(irr.to(tl.int32), 0)
    tl.debug_barrier()
    return n_rel, n_irr


@triton.jit
def _add_up(s_of, sums, origin, n_rel, PLACES: tl.constexpr):
    """Sums of the first m relevant scores, in float64: differences of them are told apart."""
    so_far = (origin - origin).to(tl.float64)
    tl.store(sums, so_far)
    for start in range(0, n_rel, PLACES):
        k = start + tl.arange(0, PLACES)
        s = tl.load(s_of + k, mask=k < n_rel, other=0.0)
        s = tl.where(k < n_rel, s - origin, 0.0).to(tl.float64)
        tl.store(sums + k + 1, so_far + tl.cumsum(s, 0), mask=k < n_rel)
        so_far += tl.sum(s, 0)
    tl.debug_barrier()


@triton.jit
def _steps(high, low, m_low, m, n, known, FORM: tl.constexpr):
    """step(m_low + 1, n) + … + step(m, n)."""
    to = m + n  # one of both is a block, and so is all that follows
    if FORM == FIRST:
        return tl.where(m_low == 0, tl.load(high + (to - m), mask=known, other=0.0), 0.0)
    since = to - m + m_low
    result = tl.load(high + to, mask=known, other=0.0) - tl.load(high + since, mask=known, other=0.0)
    result += tl.load(low + to, mask=known, other=0.0) - tl.load(low + since, mask=known, other=0.0)
    if FORM == AP:
        ratio = (to - m).to(tl.float32) / (to.to(tl.float32) * since.to(tl.float32))
        result -= (to - since).to(tl.float32) * ratio
    return result


@triton.jit
def _loss(high, low, k, n, known, FORM: tl.constexpr):
    """What n irrelevant items above cost the k-th relevant one."""
    if FORM == AP:
        return n.to(tl.float32) / (k + n).to(tl.float32)
    if FORM == FIRST:
        return tl.load(low + n, mask=known & (k == 1), other=0.0)
    result = tl.load(high + k + n, mask=known, other=0.0) - tl.load(high + k, mask=known, other=0.0)
    return result + tl.load(low + k + n, mask=known, other=0.0) - tl.load(low + k, mask=known, other=0.0)


@triton.jit
def _above_irrelevant(s_of, t, shift, n_rel, halvings, BLOCK: tl.constexpr):
    """How many relevant items score more than t. Equal scores are a mistake: the irrelevant item is above."""
    low, high = tl.full((BLOCK,), 0, dtype=tl.int32), tl.full((BLOCK,), 0, dtype=tl.int32) + n_rel
    for _ in range(halvings):
        middle = (low + high) // 2
        is_open = low < high
        s = tl.load(s_of + middle, mask=is_open, other=0.0) + shift
        low = tl.where(is_open & (s > t), middle + 1, low)
        high = tl.where(is_open & (s <= t), middle, high)
    return low


@triton.jit
def _above_relevant(values, s, shift, n_irr, halvings, BLOCK: tl.constexpr):
    """How many irrelevant items score at least s."""
    low, high = tl.full((BLOCK,), 0, dtype=tl.int32), tl.full((BLOCK,), 0, dtype=tl.int32) + n_irr
    for _ in range(halvings):
        middle = (low + high) // 2
        is_open = low < high
        t = tl.load(values + middle, mask=is_open, other=0.0)
        low = tl.where(is_open & (t >= s + shift), middle + 1, low)
        high = tl.where(is_open & (t < s + shift), middle, high)
    return low


@triton.jit
def _fewer(counts_of, limit, n, halvings, BLOCK: tl.constexpr):
    """How many of n whole numbers, which never fall, are less than `limit`."""
    low, high = tl.full((BLOCK,), 0, dtype=tl.int32), tl.full((BLOCK,), 0, dtype=tl.int32) + n
    for _ in range(halvings):
        middle = (low + high) // 2
        is_open = low < high
        count = tl.load(counts_of + middle, mask=is_open, other=0)
        low = tl.where(is_open & (count < limit), middle + 1, low)
        high = tl.where(is_open & (count >= limit), middle, high)
    return low


@triton.jit
def _to_items(columns, item_of, total_of, weight_of, weights, n_rel, n_irr, BLOCK: tl.constexpr):
    """Weights in the order in which the items came; 0 where a side is empty."""
    for start in range(0, n_irr, BLOCK):
        n = start + tl.arange(0, BLOCK)
        known = n < n_irr
        weight = tl.load(total_of + n, mask=known, other=0.0)
        weight = tl.where(n_rel > 0, weight, 0.0)
        tl.store(weights + tl.load(columns + n, mask=known, other=0), weight, mask=known)
    for start in range(0, n_rel, BLOCK):
        k = start + tl.arange(0, BLOCK)
        known = k < n_rel
        item = tl.load(item_of + k, mask=known, other=0)
        weight = tl.load(weight_of + k, mask=known, other=0.0)
        tl.store(weights + item, tl.where(n_irr > 0, weight, 0.0), mask=known)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _last_best(value, where, other_value, other_where):
    """The larger value; of equals the later one."""
    later = other_value >= value
    return tl.where(later, other_value, value), tl.where(later, other_where, where)
