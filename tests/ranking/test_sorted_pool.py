"""Splitting a pool into its two sorted sides, and going back."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankshot.ranking.sorted_pool import other_side, split


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**31), st.booleans())
def test_split_sorts_each_side_and_to_items_goes_back(items, seed, bounded):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randint(-4, 5, (6, items), generator=random).double() / 4
    kind = torch.randint(3, (6, items), generator=random)  # relevant, irrelevant, or neither
    sides = split(scores, kind == 0, kind == 1, bound=items if bounded else None)
    for query in range(6):
        for side, found, which, count in (
            (0, sides.relevant, sides.relevant_item, sides.n_relevant),
            (1, sides.irrelevant, sides.irrelevant_item, sides.n_irrelevant),
        ):
            expected = [item for item in range(items) if kind[query, item] == side]
            expected.sort(key=lambda item: -float(scores[query, item]))  # stable, as ours must be
            assert int(count[query]) == len(expected)
            assert which[query, : len(expected)].tolist() == expected
            assert found[query, : len(expected)].tolist() == scores[query, expected].tolist()
            assert (found[query, len(expected) :] < -1).all()
    ranked = kind < 2
    assert torch.equal(sides.to_items(sides.relevant, sides.irrelevant)[ranked], scores[ranked])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).map(sorted))
def test_other_side_of_the_other_side(above):
    mine = torch.tensor([above])
    theirs = other_side(mine, 9)
    assert theirs[0].tolist() == [sum(n < j for n in above) for j in range(1, 10)]
    assert torch.equal(other_side(theirs, len(above)), mine)
