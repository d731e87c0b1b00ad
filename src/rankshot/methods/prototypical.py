"""Prototypical Networks (Snell et al., 2017): a class is the mean of its images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from rankshot.limits import positive

from .episodic import Episodic
from .method import Description, Given, register
from .ruled import RuledNetwork, network

HALVED: dict[str, Any] = {"schedule": "step", "decay": 0.5, "decay_every": 2000}
MEAN = "scale=0.000625"  # of 1,600 squared differences, not their sum: a softmax of sums is all or nothing at first


@network("prototypical")
class PrototypicalNetwork(RuledNetwork):
    """Scores are minus the squared Euclidean distances to the mean embeddings of the classes, times `scale`."""

    def __init__(self, embedder: Mapping[str, Any], scale: float = 1.0) -> None:
        super().__init__(embedder)
        self.scale = positive("scale", scale)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        means = support.mean(2)
        squares = queries.square().sum(-1, keepdim=True) + means.square().sum(-1)[:, None]
        return self.scale * (2 * queries @ means.mT - squares)


@dataclass(frozen=True)
class PrototypicalOptions:
    """shot as in all episodes; scale of the squared distances, 1 in the paper."""

    shot: int = 1
    scale: float = 1.0


@register("prototypical")
class Prototypical(Episodic):
    """Learns on episodes, in its paper of more classes than it will be asked about."""

    Options: ClassVar[type] = PrototypicalOptions
    settings: ClassVar[dict[str, Any]] = {"batch_classes": 20, "batch_size": 120}
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "omniglot": {"batch_classes": 60, "batch_size": 360, **HALVED},
        "omniglot-5-shot": {"batch_classes": 60, "batch_size": 600, "options": ("shot=5",), **HALVED},
        "mini-imagenet": {"batch_classes": 30, "batch_size": 480, "options": (MEAN,), **HALVED},
        "mini-imagenet-5-shot": {"batch_classes": 20, "batch_size": 400, "options": ("shot=5", MEAN), **HALVED},
    }

    @classmethod
    def network(cls, given: Given) -> Description:
        return {"name": "prototypical", "embedder": given.embedder, "scale": cls.options_in(given).scale}
