"""Supervised contrastive learning (Khosla et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankshot.losses.supcon_loss import SupConLoss

from .method import Given, Method, register
from .ranked import PRESETS


@dataclass(frozen=True)
class SupConOptions:
    """temperature: how soft the choice of an image is."""

    temperature: float = 0.1


@register("supcon")
class SupCon(Method):
    """See `losses.SupConLoss`."""

    Options: ClassVar[type] = SupConOptions
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = SupConLoss(self.options.temperature)
