"""The nearest-neighbour baseline: a classifier of the training classes, whose embedding is compared by its cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from rankshot.losses.classifier_loss import ClassifierLoss
from rankshot.vectors import unit_vectors

from .method import Description, Given, Method, Sampler, register
from .ruled import RuledNetwork, network


@network("nearest")
class NearestNetwork(RuledNetwork):
    """A query is of the class of its nearest labelled image, by the cosine, however many images a class has."""

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shot = support.shape[1:3]
        cosines = unit_vectors(queries) @ unit_vectors(support.flatten(1, 2)).mT
        return cosines.view(*cosines.shape[:2], way, shot).amax(-1)


class Classifying(Method):
    """Learns to tell the training classes apart, from any images."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {"omniglot": {}, "mini-imagenet": {}}

    def sampler(self, labels: Tensor, given: Given, seed: int) -> Sampler:
        from rankshot.data.episode_batches import ImageSampler

        return ImageSampler(labels, given.batch_size, seed=seed)

    @classmethod
    def batch_within(cls, counts: Sequence[int], classes: int, size: int, options: Sequence[str] = ()) -> tuple[int, int]:
        return classes, size  # images are drawn one by one, from all of them


@register("nearest")
class Nearest(Classifying):
    """A softmax classifier."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = ClassifierLoss(given.dimensions, given.classes)

    @classmethod
    def network(cls, given: Given) -> Description:
        return {"name": "nearest", "embedder": given.embedder}
