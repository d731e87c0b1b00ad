"""mAP-DLM and mAP-SSVM (Triantafillou et al., 2017): all rankings of a batch at once. What rankshot is for."""

from __future__ import annotations

from typing import Any, ClassVar

from rankshot.losses.ranking_loss import RankingLoss

from .method import BORROWED, Given, Method, register

PRESETS: dict[str, dict[str, Any]] = {
    "omniglot": {"batch_classes": 16, "batch_size": 128},
    "mini-imagenet": {"batch_classes": 8, "batch_size": 128, "schedule": "step"},
}


@register("map-dlm")
class MapDLM(Method):
    """By direct loss minimisation."""

    framework: ClassVar[str] = "dlm"
    uses: ClassVar[tuple[str, ...]] = tuple(name for name in BORROWED if name != "temperature")
    presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        told = {**BORROWED, **given.settings}
        self.loss = RankingLoss(
            told["metric"],
            self.framework,
            told["epsilon"],
            told["alpha"],
            told["sign"],
            smoothing=told["smoothing"],
            samples=told["samples"],
            wide=told["wide"],
            wide_alpha=told["wide_alpha"],
        )


@register("map-ssvm")
class MapSSVM(MapDLM):
    """By a structural SVM."""

    framework: ClassVar[str] = "ssvm"
