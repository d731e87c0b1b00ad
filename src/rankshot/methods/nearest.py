"""The nearest-neighbour baseline: a classifier of the training classes, whose embedding is compared by its cosine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from rankshot.losses.classifier_loss import ClassifierLoss
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network
from rankshot.vectors import unit_vectors

from .method import Context, Method, Sampler, register
from .with_rule import NetworkWithRule


@register_network("nearest")
class NearestNetwork(NetworkWithRule):
    """A query is of the class of its nearest labelled image, by the cosine, however many images a class has."""

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shot = support.shape[1:3]
        cosines = unit_vectors(queries) @ unit_vectors(support.flatten(1, 2)).mT
        return cosines.view(*cosines.shape[:2], way, shot).amax(-1)


class Classifying(Method):
    """Learns to tell the training classes apart, from any images."""

    def sampler(self, labels: Tensor, seed: int) -> Sampler:
        from rankshot.data.episode_batches import ImageSampler

        return ImageSampler(labels, self.context.batch_size, seed=seed)

    @classmethod
    def batch_within(cls, counts: Sequence[int], classes: int, size: int, settings: Mapping[str, Any]) -> tuple[int, int]:
        return classes, size  # images are drawn one by one, from all of them


@register("nearest", presets={"omniglot": {}, "mini-imagenet": {}})
class Nearest(Classifying):
    """A softmax classifier of the training classes, whose embeddings are compared by their cosine.

    A query is of the class of its nearest labelled image.

    Args:
        context: what the method is made for.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, Nearest
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = Nearest(context).network(embedder)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach()  # cosines
        tensor([[[0.8000, 0.6000]]])
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.loss = ClassifierLoss(context.embedding_dim, context.classes)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "nearest")
