"""A few-shot system of one's own in one file: centre loss beside a classifier (Wen et al., 2016).

rankshot train --load examples/own_method.py --method centre --pull 0.01
"""

import torch
from torch import nn

from rankshot.losses import ClassifierLoss
from rankshot.methods import Context, Method, register


@register("centre")
class Centre(Method):
    """Classifies the training classes, and draws each image towards the learned centre of its class.

    Args:
        pull: how much the distance to a class's centre counts beside the classification.
    """

    def __init__(self, context: Context, *, pull: float = 0.01) -> None:
        super().__init__(context)
        self.pull = pull
        self.classify = ClassifierLoss(context.embedding_dim, context.classes)
        self.centres = nn.Embedding(context.classes, context.embedding_dim)

    def loss(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        away = (embeddings.float() - self.centres(labels)).square().sum(-1).mean()
        return self.classify(embeddings, labels) + self.pull * away
