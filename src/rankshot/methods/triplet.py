"""Triplets with semi-hard negatives (Schroff et al., 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankshot.losses.triplet_loss import TripletLoss

from .method import Given, Method, register
from .ranked import PRESETS


@dataclass(frozen=True)
class TripletOptions:
    """margin: by which one's own class is to be nearer."""

    margin: float = 0.2


@register("triplet")
class Triplet(Method):
    """See `losses.TripletLoss`."""

    Options: ClassVar[type] = TripletOptions
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = TripletLoss(self.options.margin)
