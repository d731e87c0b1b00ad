"""Large margin nearest neighbours (Weinberger and Saul, 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankshot.losses.lmnn_loss import LMNNLoss

from .method import Given, Method, register
from .ranked import PRESETS


@dataclass(frozen=True)
class LMNNOptions:
    """neighbours of its own class that an image is drawn to; margin around them; push: the weight of keeping others out."""

    neighbours: int = 3
    margin: float = 0.5
    push: float = 0.5


@register("lmnn")
class LMNN(Method):
    """See `losses.LMNNLoss`."""

    Options: ClassVar[type] = LMNNOptions
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = LMNNLoss(self.options.neighbours, self.options.margin, self.options.push)
