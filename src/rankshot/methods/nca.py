"""Neighbourhood components analysis (Goldberger et al., 2004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankshot.losses.nca_loss import NCALoss

from .method import Given, Method, register
from .ranked import PRESETS


@dataclass(frozen=True)
class NCAOptions:
    """temperature: how soft the choice of a neighbour is."""

    temperature: float = 0.1


@register("nca")
class NCA(Method):
    """See `losses.NCALoss`."""

    Options: ClassVar[type] = NCAOptions
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = NCALoss(self.options.temperature)
