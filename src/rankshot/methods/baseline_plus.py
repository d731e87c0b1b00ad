"""Baseline++ (Chen et al., 2019): a classifier by cosines, whose last layer is learned anew from the labelled images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.limits import positive, whole
from rankshot.losses.classifier_loss import ClassifierLoss
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network
from rankshot.vectors import unit_vectors

from .method import Context, by_classification, register
from .nearest import Classifying
from .with_rule import NetworkWithRule

MOST_PASSES = 10_000


@register_network("baseline++")
class CosineClassifierNetwork(NetworkWithRule):
    """Starts from the mean directions of the classes, and learns them by gradient descent on the labelled images.

    It takes as many steps as `passes` through them in batches of 4 have, each on all of them. The paper starts from random
    weights, and takes the batches one by one, with momentum; here nothing is random.

    scale   of the cosines. The authors' code has 2 for up to 200 classes and 10 for more, times a length that each class
            learns; here there is one scale, and no lengths.
    """

    def __init__(self, embedder: nn.Module, passes: int = 100, rate: float = 0.01, scale: float = 10.0) -> None:
        super().__init__(embedder)
        self.passes = whole("passes", passes, 1, MOST_PASSES)
        self.rate, self.scale = positive("rate", rate), positive("scale", scale)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shot = support.shape[1:3]
        images = unit_vectors(support.flatten(1, 2))
        shares = self.learned(images @ images.mT, torch.arange(way, device=support.device).repeat_interleave(shot))
        return self.scale * unit_vectors(queries) @ unit_vectors(shares @ images).mT

    def learned(self, cosines: Tensor, labels: Tensor) -> Tensor:
        """Of S labelled images, (E, S, S) and (S,) -> (E, way, S): how much of each image a class has in its weights.

        The weights start as sums of the images, and so are their gradients: the steps need no more than the images'
        cosines, however long the embeddings are.
        """
        right = nn.functional.one_hot(labels).T.to(cosines.dtype)
        shares = right * _inverse_lengths(right, right @ cosines)
        for _ in range(self.passes * math.ceil(len(labels) / 4)):
            products = shares @ cosines  # of weights and images
            inverse = _inverse_lengths(shares, products)
            pull = self.scale / len(labels) * ((self.scale * inverse * products).softmax(1) - right)
            outward = (pull * products).sum(-1, keepdim=True) * inverse  # no cosine changes along the weights themselves
            shares = shares - self.rate * inverse * (pull - outward * inverse * shares)
        return shares


def _inverse_lengths(shares: Tensor, products: Tensor) -> Tensor:
    """Of the weights, (…, way, 1); 0 where they are 0, and then stay so."""
    squares = (shares * products).sum(-1, keepdim=True)
    return torch.where(squares > 1e-12, squares.rsqrt(), 0.0)


@register("baseline++", presets={"omniglot": {}, "mini-imagenet": {}})
class BaselinePlus(Classifying):
    """Baseline++ (Chen et al., 2019): a classifier by cosines, whose last layer is learned anew for every task.

    Args:
        context: what the method is made for.
        passes: through the labelled images at test.
        rate: of learning from them.
        scale: of the cosines.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, BaselinePlus
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = BaselinePlus(context).network(embedder)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach().round(decimals=2)  # 10 times the cosines with learned weights
        tensor([[[8., 6.]]])
    """

    def __init__(self, context: Context, *, passes: int = 100, rate: float = 0.01, scale: float = 10.0) -> None:
        super().__init__(context)
        self.rule = {"passes": passes, "rate": rate, "scale": scale}
        self.loss = ClassifierLoss(context.embedding_dim, context.classes, cosine=True, scale=scale)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "baseline++", **self.rule)

    def decisive(self, tasks: Sequence[Any]) -> int:
        return by_classification(tasks)
