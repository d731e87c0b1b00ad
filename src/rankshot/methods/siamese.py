"""The siamese network, the paper's baseline: are two images of one class?"""

from __future__ import annotations

from typing import Any, ClassVar

from rankshot.losses.siamese_loss import SiameseLoss

from .method import Given, Method, register
from .ranked import PRESETS


@register("siamese")
class Siamese(Method):
    """Learns from all pairs of a batch."""

    learning_rate: ClassVar[float] = 0.1
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        **PRESETS,
        "mini-imagenet": {**PRESETS["mini-imagenet"], "updates": 24_000, "learning_rate": 0.01},
    }

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = SiameseLoss(given.dimensions)
