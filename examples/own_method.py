"""A few-shot system of one's own in one file: centre loss beside a classifier (Wen et al., 2016).

rankshot train --load examples/own_method.py --method centre --options pull=0.01
"""

from dataclasses import dataclass

import torch
from torch import nn

from rankshot.losses import ClassifierLoss
from rankshot.methods import Given, Method, register


@dataclass(frozen=True)
class CentreOptions:
    """pull: how much the distance to a class's centre counts beside the classification."""

    pull: float = 0.01


@register("centre")
class Centre(Method):
    """Classifies the training classes, and draws each image towards the learned centre of its class."""

    Options = CentreOptions

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.classify = ClassifierLoss(given.dimensions, given.classes)
        self.centres = nn.Embedding(given.classes, given.dimensions)

    def loss(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        away = (embeddings.float() - self.centres(labels)).square().sum(-1).mean()
        return self.classify(embeddings, labels) + self.options.pull * away
