"""FastAP (Cakir et al., 2019): average precision of distances sorted into bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankshot.losses.fast_ap_loss import FastAPLoss

from .method import Given, Method, register
from .ranked import PRESETS


@dataclass(frozen=True)
class FastAPOptions:
    """bins: how many."""

    bins: int = 10


@register("fast-ap")
class FastAP(Method):
    """See `losses.FastAPLoss`."""

    Options: ClassVar[type] = FastAPOptions
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = FastAPLoss(self.options.bins)
