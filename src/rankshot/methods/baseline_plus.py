"""Baseline++ (Chen et al., 2019): a classifier by cosines, whose last layer is learned anew from the labelled images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankshot.losses.checks import check_positive
from rankshot.losses.classifier_loss import ClassifierLoss
from rankshot.losses.unit import unit_vectors

from .method import Description, Given, by_classification, register
from .nearest import Classifying
from .ruled import RuledNetwork, network


@network("baseline++")
class CosineClassifierNetwork(RuledNetwork):
    """Starts from the mean directions of the classes, and learns them by gradient descent on the labelled images.

    It takes as many steps as `passes` through them in batches of 4 have, each on all of them. The paper starts from random
    weights, and takes the batches one by one, with momentum; here nothing is random.

    scale   of the cosines. The authors' code has 2 for up to 200 classes and 10 for more, times a length that each class
            learns; here there is one scale, and no lengths.
    """

    def __init__(self, embedder: Mapping[str, Any], passes: int = 100, rate: float = 0.01, scale: float = 10.0) -> None:
        super().__init__(embedder)
        if passes < 1:
            raise ValueError(f"passes must be 1 or more, got {passes}")
        self.passes, self.rate = passes, check_positive("rate", rate)
        self.scale = check_positive("scale", scale)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shot = support.shape[1:3]
        images = unit_vectors(support.flatten(1, 2))
        right = torch.arange(way, device=support.device).repeat_interleave(shot).repeat(len(support))
        weights = unit_vectors(unit_vectors(support).mean(2)).detach()
        with torch.enable_grad():
            for _ in range(self.passes * math.ceil(way * shot / 4)):
                weights.requires_grad_()
                logits = self.scale * images.detach() @ unit_vectors(weights).mT
                lost = nn.functional.cross_entropy(logits.flatten(0, 1), right, reduction="sum") / (way * shot)
                (gradient,) = torch.autograd.grad(lost, weights)
                weights = (weights - self.rate * gradient).detach()
        return self.scale * unit_vectors(queries) @ unit_vectors(weights).mT


@dataclass(frozen=True)
class BaselinePlusOptions:
    """passes through the labelled images at test, and the rate of learning from them; scale of the cosines."""

    passes: int = 100
    rate: float = 0.01
    scale: float = 10.0


@register("baseline++")
class BaselinePlus(Classifying):
    """A classifier by cosines."""

    Options: ClassVar[type] = BaselinePlusOptions

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = ClassifierLoss(given.dimensions, given.classes, cosine=True, scale=self.options.scale)

    @classmethod
    def network(cls, given: Given) -> Description:
        options = cls.options_in(given)
        own = {"passes": options.passes, "rate": options.rate, "scale": options.scale}
        return {"name": "baseline++", "embedder": given.embedder, **own}

    def decisive(self, tasks: Sequence[Any]) -> int:
        return by_classification(tasks)
