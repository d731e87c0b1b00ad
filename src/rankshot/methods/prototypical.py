"""Prototypical Networks (Snell et al., 2017): a class is the mean of its images."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from .episodic import Episodic
from .method import Description, Given, register
from .ruled import RuledNetwork, network

HALVED: dict[str, Any] = {"schedule": "step", "decay": 0.5, "decay_every": 2000}


@network("prototypical")
class PrototypicalNetwork(RuledNetwork):
    """Scores are minus the squared Euclidean distances to the mean embeddings of the classes."""

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        means = support.mean(2)
        squares = queries.square().sum(-1, keepdim=True) + means.square().sum(-1)[:, None]
        return 2 * queries @ means.mT - squares


@register("prototypical")
class Prototypical(Episodic):
    """Learns on episodes, in its paper of more classes than it will be asked about."""

    settings: ClassVar[dict[str, Any]] = {"batch_classes": 20, "batch_size": 120}
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "omniglot": {"batch_classes": 60, "batch_size": 360, **HALVED},
        "omniglot-5-shot": {"batch_classes": 60, "batch_size": 600, "options": ("shot=5",), **HALVED},
        "mini-imagenet": {"batch_classes": 30, "batch_size": 480, **HALVED},
        "mini-imagenet-5-shot": {"batch_classes": 20, "batch_size": 400, "options": ("shot=5",), **HALVED},
    }

    @classmethod
    def network(cls, given: Given) -> Description:
        return {"name": "prototypical", "embedder": given.embedder}
