"""Prototypical Networks (Snell et al., 2017): a class is the mean of its images."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rankshot.limits import positive
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network

from .episodic import Episodic
from .method import Context, register
from .with_rule import NetworkWithRule

HALVED: dict[str, Any] = {"schedule": "step", "decay": 0.5, "decay_every": 2000}
# A softmax of the sums of 1,600 squared differences is all or nothing at first, and one of their means learns slowly. The
# last 2,000 of so many updates have a learning rate of 8e-6.
OF_MINI_IMAGENET: dict[str, Any] = {"scale": 0.01, "updates": 16_000}


@register_network("prototypical")
class PrototypicalNetwork(NetworkWithRule):
    """Scores are minus the squared Euclidean distances to the mean embeddings of the classes, times `scale`."""

    def __init__(self, embedder: nn.Module, scale: float = 1.0) -> None:
        super().__init__(embedder)
        self.scale = positive("scale", scale)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        means = support.mean(2)
        squares = queries.square().sum(-1, keepdim=True) + means.square().sum(-1)[:, None]
        return self.scale * (2 * queries @ means.mT - squares)


@register(
    "prototypical",
    run_settings={"batch_classes": 20, "batch_size": 120},
    presets={
        "omniglot": {"batch_classes": 60, "batch_size": 360, **HALVED},
        "omniglot-5-shot": {"batch_classes": 60, "batch_size": 600, "shot": 5, **HALVED},
        "mini-imagenet": {"batch_classes": 30, "batch_size": 480, **OF_MINI_IMAGENET, **HALVED},
        "mini-imagenet-5-shot": {"batch_classes": 20, "batch_size": 400, "shot": 5, **OF_MINI_IMAGENET, **HALVED},
    },
)
class Prototypical(Episodic):
    """Prototypical Networks (Snell et al., 2017): a class is the mean of its images.

    Scores are minus the squared distances to the class means. In the paper, training episodes have more classes than test
    episodes.

    Args:
        context: what the method is made for.
        shot: labelled images a class of a training episode.
        scale: of the squared distances, 1 in the paper.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, Prototypical
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = Prototypical(context).network(embedder)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach()  # -(0.2^2 + 0.6^2) and -(0.8^2 + 0.4^2)
        tensor([[[-0.4000, -0.8000]]])
    """

    def __init__(self, context: Context, *, shot: int = 1, scale: float = 1.0) -> None:
        super().__init__(context, shot=shot)
        self.scale = positive("scale", scale)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "prototypical", scale=self.scale)
