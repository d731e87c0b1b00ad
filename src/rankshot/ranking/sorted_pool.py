"""The two sides of every ranking, sorted: the form in which all inference happens.

Within the relevant items, and within the irrelevant ones, the best order is always the order of the scores. So once both
sides are sorted, a ranking is just a way to interleave them, and it is told by one integer an item: its *opponents above*
(irrelevant items above a relevant one, relevant items above an irrelevant one). One side's integers tell the other's
(`other_side`), so between sorting and the answer a ranking is (Q, R) int64: n_k, the irrelevant items above the k-th
relevant one, never falling with k; and no less than all of them past a query's end.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .checks import largest_score
from .sorting import sort_rows


@dataclass(frozen=True)
class SortedPool:
    """Q rankings of G items each, as two sorted lists of scores.

    relevant         (Q, R)  scores, best first; past a query's end -inf
    irrelevant       (Q, G)  scores, best first; past a query's end a number far below every score
    n_relevant       (Q, 1)  how many of the R places are filled, P in the papers; R >= 1
    n_irrelevant     (Q, 1)  how many of the G places are filled, N in the papers
    relevant_item    (Q, R)  which item stands at each place; G past the end
    irrelevant_item  (Q, G)  the same; past the end the items of the other side, and those not ranked
    """

    relevant: Tensor
    irrelevant: Tensor
    n_relevant: Tensor
    n_irrelevant: Tensor
    relevant_item: Tensor
    irrelevant_item: Tensor

    @property
    def dtype(self) -> torch.dtype:
        """The precision in which everything is computed: that of the scores."""
        return self.relevant.dtype

    @property
    def rankable(self) -> Tensor:
        """(Q, 1) bool: there is something on both sides."""
        return (self.n_relevant > 0) & (self.n_irrelevant > 0)

    def rows(self, chosen: slice) -> SortedPool:
        """The same for some of the queries."""
        return SortedPool(
            self.relevant[chosen],
            self.irrelevant[chosen],
            self.n_relevant[chosen],
            self.n_irrelevant[chosen],
            self.relevant_item[chosen],
            self.irrelevant_item[chosen],
        )

    def to_items(self, of_relevant: Tensor, of_irrelevant: Tensor) -> Tensor:
        """(Q, R), (Q, G) -> (Q, G): one value an item, in the order in which the items came; anything if not ranked."""
        queries, items = of_irrelevant.shape
        values = of_irrelevant.new_empty(queries, items + 1)  # one column more, for the places that no item fills
        values.scatter_(-1, self.irrelevant_item, of_irrelevant)
        values.scatter_(-1, self.relevant_item, of_relevant)
        return values[:, :items]


def split(scores: Tensor, relevant: Tensor, irrelevant: Tensor, bound: int | None = None) -> SortedPool:
    """Part the items of every query by the two masks (an item in neither is not ranked), and sort each side.

    Equal scores on one side keep the order in which the items came. `bound` is a number of relevant items that no query
    exceeds; without it the number is read from the data, which makes an accelerator wait.
    """
    queries, items = scores.shape
    column = torch.arange(items, device=scores.device)
    far_below = -2 * largest_score(scores)
    irrelevant_scores, irrelevant_item = sort_rows(scores.where(irrelevant, far_below))

    so_far = relevant.cumsum(-1)
    n_relevant = so_far[:, -1:]
    places = max(1, int(n_relevant.max()) if bound is None else min(bound, items))
    place = (so_far - 1).where(relevant, places)  # one place more, for what is not relevant
    item = place.new_full((queries, places + 1), items).scatter_(-1, place, column.expand_as(place))[:, :places]
    past_the_end = column[:places] >= n_relevant
    relevant_scores = scores.gather(-1, item.clamp(max=items - 1)).masked_fill_(past_the_end, -torch.inf)
    relevant_scores, order = sort_rows(relevant_scores)
    return SortedPool(
        relevant=relevant_scores,
        irrelevant=irrelevant_scores,
        n_relevant=n_relevant,
        n_irrelevant=irrelevant.sum(-1, keepdim=True),
        relevant_item=item.gather(-1, order),
        irrelevant_item=irrelevant_item,
    )


def other_side(above: Tensor, places: int) -> Tensor:
    """What the opponents have above them: (Q, K) int64 in 0..places -> (Q, places).

    Item j of the other side (counted from 1) stands below exactly those of ours that have fewer than j opponents above:

    >>> other_side(torch.tensor([[0, 2, 2]]), places=3)  # one leads, two stand below the second opponent
    tensor([[1, 1, 3]])
    """
    counts = above.new_zeros(above.shape[0], places + 1)
    counts.scatter_add_(-1, above, torch.ones_like(above))
    return counts.cumsum(-1)[:, :places]


def counting(last: int, like: Tensor) -> Tensor:
    """1, 2, … last, in the precision and on the device of `like`."""
    return torch.arange(1, last + 1, device=like.device, dtype=like.dtype)


def truth(sides: SortedPool) -> Tensor:
    """(Q, R): every relevant item above every irrelevant one."""
    places, items = sides.relevant.shape[1], sides.irrelevant.shape[1]
    past_the_end = torch.arange(places, device=sides.relevant.device) >= sides.n_relevant
    return past_the_end * items


def predicted(sides: SortedPool) -> Tensor:
    """(Q, R): the order of the scores. An irrelevant item that scores as much as a relevant one is above it."""
    return torch.searchsorted(-sides.irrelevant, -sides.relevant, right=True)
