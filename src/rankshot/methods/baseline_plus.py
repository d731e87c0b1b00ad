"""Baseline++ (Chen et al., 2019): a classifier by cosines, whose last layer is learned anew from the labelled images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.losses.classifier_loss import ClassifierLoss
from rankshot.losses.unit import unit_vectors

from .method import Description, Given, register
from .nearest import Classifying
from .ruled import RuledNetwork, network

SCALE = 10.0


@network("baseline++")
class CosineClassifierNetwork(RuledNetwork):
    """Starts from the mean directions of the classes, and takes `steps` of gradient descent on the labelled images.

    The paper starts from random weights, takes batches of 4, and 100 passes; from the means there is nothing random.
    """

    def __init__(self, embedder: Mapping[str, Any], steps: int = 100, rate: float = 0.01) -> None:
        super().__init__(embedder)
        self.steps, self.rate = steps, rate

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shot = support.shape[1:3]
        images = unit_vectors(support.flatten(1, 2))
        right = torch.arange(way, device=support.device).repeat_interleave(shot).repeat(len(support))
        weights = unit_vectors(unit_vectors(support).mean(2)).detach()
        with torch.enable_grad():
            for _ in range(self.steps):
                weights.requires_grad_()
                logits = SCALE * images.detach() @ unit_vectors(weights).mT
                lost = nn.functional.cross_entropy(logits.flatten(0, 1), right, reduction="sum") / (way * shot)
                (gradient,) = torch.autograd.grad(lost, weights)
                weights = (weights - self.rate * gradient).detach()
        return SCALE * unit_vectors(queries) @ unit_vectors(weights).mT


@register("baseline++")
class BaselinePlus(Classifying):
    """A classifier by cosines."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = ClassifierLoss(given.dimensions, given.classes, cosine=True, scale=SCALE)

    @classmethod
    def network(cls, given: Given) -> Description:
        return {"name": "baseline++", "embedder": given.embedder}
