"""Smooth-AP (Brown et al., 2020): average precision with softened comparisons. Today's rival."""

from __future__ import annotations

from typing import Any, ClassVar

from rankshot.losses.smooth_ap_loss import SmoothAPLoss

from .method import BORROWED, Given, Method, register
from .ranked import PRESETS


@register("smooth-ap")
class SmoothAP(Method):
    """See `losses.SmoothAPLoss`; its temperature is a setting of training."""

    uses: ClassVar[tuple[str, ...]] = ("temperature",)
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = SmoothAPLoss({**BORROWED, **given.settings}["temperature"])
