"""The nearest-neighbour baseline: a classifier of the training classes, whose embedding is compared by its cosine."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from rankshot.losses.classifier_loss import ClassifierLoss

from .method import Given, Method, Sampler, register


class Classifying(Method):
    """Learns to tell the training classes apart, from any images."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {"omniglot": {}, "mini-imagenet": {}}

    def sampler(self, labels: Tensor, given: Given, seed: int) -> Sampler:
        from rankshot.data.episode_batches import ImageSampler

        return ImageSampler(labels, given.batch_size, seed=seed)


@register("nearest")
class Nearest(Classifying):
    """A softmax classifier."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.loss = ClassifierLoss(given.dimensions, given.classes)
