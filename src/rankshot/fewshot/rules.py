"""From similarities to a class: the nearest representative, or average precision when there are several."""

from __future__ import annotations

import torch
from torch import Tensor

NEARER = 1e-9  # what nearness counts beside average precision: it only breaks ties


def class_scores(similarities: Tensor) -> Tensor:
    """(..., way, shot) similarities of a query to the representatives -> (..., way) scores; the largest is the answer.

    With one representative a class, its similarity. With several, the average precision of the query's ranking of all of
    them if that class were the right one (a tie between classes is a mistake); of equal ones the class whose best
    representative is nearer.
    """
    way, shot = similarities.shape[-2:]
    if shot == 1:
        return similarities.squeeze(-1)
    similarities = similarities.double()
    everyone = similarities.flatten(-2).sort(-1).values
    own = similarities.sort(-1, descending=True).values
    not_below = way * shot - torch.searchsorted(everyone, own.flatten(-2).contiguous()).view_as(own)
    own_not_below = (own[..., None, :] >= own[..., :, None]).sum(-1)
    k = torch.arange(1, shot + 1, device=own.device, dtype=own.dtype)
    average_precision: Tensor = (k / (k + not_below - own_not_below)).mean(-1)
    return average_precision + NEARER * own[..., 0]
