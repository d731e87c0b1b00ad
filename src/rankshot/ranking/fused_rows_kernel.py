"""The kernel of `rows`, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .objectives import Settings

CHUNK = 32  # numbers of relevant items, or items, that a tile has beside all items


def launch(
    scores: Tensor,
    relevant: Tensor,
    irrelevant: Tensor,
    scale: Tensor,
    steps: Tensor,
    losses: Tensor,
    loss: Tensor,
    weights: Tensor,
    chosen: Settings,
    shifts: Tensor,
) -> None:
    queries, items = scores.shape
    block = max(CHUNK, triton.next_power_of_2(items))
    _objective[(queries,)](
        scores,
        relevant.contiguous().view(torch.uint8),
        irrelevant.contiguous().view(torch.uint8),
        scale,
        steps,
        losses,
        loss,
        weights,
        items,
        chosen.epsilon,
        chosen.alpha,
        shifts,
        len(shifts),
        chosen.framework == "ssvm",
        block,
        CHUNK,
        num_warps=4 if block <= 256 else 8,
    )


@triton.jit
def _objective(
    scores,
    relevant,
    irrelevant,
    scale,
    steps,
    losses,
    loss,
    weights,
    items,
    epsilon,
    alpha,
    shifts,
    n_shifts,
    IS_SSVM: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
):
    query = tl.program_id(0)
    item = tl.arange(0, BLOCK)
    row = query.to(tl.int64) * items
    in_range = item < items
    s = tl.load(scores + row + item, mask=in_range, other=0.0)
    # As a number, since Triton 3.6 fails to compile two masks that are used within the loops and after them.
    side = tl.load(relevant + row + item, mask=in_range, other=0).to(tl.int32)
    side += 2 * tl.load(irrelevant + row + item, mask=in_range, other=0).to(tl.int32)
    rel, irr = side == 1, side == 2
    n_rel, n_irr = tl.sum(rel.to(tl.int32), 0), tl.sum(irr.to(tl.int32), 0)
    rankable = (n_rel > 0) & (n_irr > 0)
    # Only differences count, and large sums would lose them.
    origin = tl.where(n_rel > 0, tl.max(tl.where(rel, s, float("-inf")), 0), 0.0)
    x = s - origin

    # The place of every item on its own side, from 1: equal scores keep the order in which the items came.
    place = tl.full((BLOCK,), 1, dtype=tl.int32)
    for start in range(0, items, CHUNK):
        other, o, o_rel, o_irr = _others(scores, relevant, irrelevant, row, start, items, CHUNK)
        ahead = (o[None, :] > s[:, None]) | ((o[None, :] == s[:, None]) & (other[None, :] < item[:, None]))
        same_side = (rel[:, None] & o_rel[None, :]) | (irr[:, None] & o_irr[None, :])
        place += tl.sum((ahead & same_side).to(tl.int32), 1)

    factor = tl.load(scale + query)
    pairs = n_rel.to(tl.float32) * n_irr.to(tl.float32)
    pull = epsilon / 2 * factor * pairs
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    value = 0.0
    for at in range(n_shifts):
        shift = tl.load(shifts + at)
        # Loss-augmented: irrelevant items stand below `m` relevant ones, where m makes the cheapest sum of pairs.
        m = tl.zeros((BLOCK,), dtype=tl.int32)
        best = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_rel, CHUNK):
            count = start + 1 + tl.arange(0, CHUNK)
            first = tl.sum(tl.where(rel[:, None] & (place[:, None] <= count[None, :]), x[:, None], 0.0), 0)
            known = irr[:, None] & (count <= n_rel)[None, :]
            step = tl.load(steps + (count[None, :] - 1) * items + (place[:, None] - 1), mask=known, other=0.0)
            many = count.to(tl.float32)
            cost = many[None, :] * (x[:, None] - shift) - first[None, :] + pull * step
            cost = tl.where(known, cost, float("inf"))
            cheapest = tl.min(cost, 1)
            which = tl.min(tl.where(cost == cheapest[:, None], count[None, :], 2147483647), 1)  # of equals the first
            m = tl.where(irr & (cheapest < best), which, m)
            best = tl.minimum(best, cheapest)
        # … and the k-th relevant item below those irrelevant ones that have fewer than k above them.
        above = tl.where(irr, m, 0)
        for start in range(0, n_rel, CHUNK):
            count = start + 1 + tl.arange(0, CHUNK)
            below = tl.sum((irr[:, None] & (m[:, None] < count[None, :])).to(tl.int32), 0)
            above += tl.sum(tl.where(rel[:, None] & (place[:, None] == count[None, :]), below[None, :], 0), 1)

        if IS_SSVM:  # against the truth: nothing above a relevant item
            reference = tl.where(irr, n_rel, 0)
        else:  # against the order of the scores, where equal ones are a mistake
            reference = tl.zeros((BLOCK,), dtype=tl.int32)
            mine = s + tl.where(rel, shift, 0.0)
            for start in range(0, items, CHUNK):
                _, o, o_rel, o_irr = _others(scores, relevant, irrelevant, row, start, items, CHUNK)
                o = o + tl.where(o_rel, shift, 0.0)
                over_relevant = rel[:, None] & o_irr[None, :] & (o[None, :] >= mine[:, None])
                over_irrelevant = irr[:, None] & o_rel[None, :] & (o[None, :] > mine[:, None])
                reference += tl.sum((over_relevant | over_irrelevant).to(tl.int32), 1)

        opponents = tl.where(rel, n_irr, n_rel).to(tl.float32)
        weight = (alpha - 1) * opponents + 2 * (reference.to(tl.float32) - alpha * above.to(tl.float32))
        weight = weight / tl.maximum(pairs, 1.0)
        if not IS_SSVM:
            weight = weight / epsilon
        weight = tl.where((side > 0) & rankable, weight, 0.0)
        total += weight
        value += tl.sum(weight * (s + tl.where(rel, shift, 0.0)), 0)
        if IS_SSVM:
            cost = tl.load(losses + (place - 1) * (items + 1) + above, mask=rel, other=0.0)
            value += epsilon * factor * tl.sum(cost, 0)
    tl.store(weights + row + item, total / n_shifts, mask=in_range)
    tl.store(loss + query, value / n_shifts)


@triton.jit
def _others(scores, relevant, irrelevant, row, start, items, CHUNK: tl.constexpr):
    """Some items of a query: which, their scores, and their sides."""
    other = start + tl.arange(0, CHUNK)
    in_range = other < items
    o = tl.load(scores + row + other, mask=in_range, other=0.0)
    o_rel = tl.load(relevant + row + other, mask=in_range, other=0) != 0
    o_irr = tl.load(irrelevant + row + other, mask=in_range, other=0) != 0
    return other, o, o_rel, o_irr
