"""Systems that learn from episodes like those that they are asked later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankshot.limits import whole
from rankshot.vectors import computable

from .method import Context, Method, Sampler, by_classification

MOST_TASKS = 10_000  # in a batch


class Episodic(Method):
    """Trains on episodes: the labelled images of a batch classify its others, by the network's rule.

    A batch is `tasks` episodes of `batch_classes` classes. It optimises the cross-entropy of the right classes.

    Args:
        context: what the method is made for.
        shot: labelled images a class of a training episode; the others of a class are to be classified.
        tasks: episodes in a batch.

    Raises:
        ValueError: if a class has not more than `shot` images in a batch, or the batch is no whole number of episodes.

    Examples:
        >>> import torch
        >>> from rankshot.methods import Context, Episodic
        >>> method = Episodic(Context(embedding_dim=64, classes=100, batch_classes=2, batch_size=4))
        >>> support, queries = method.split(torch.tensor([10, 11, 20, 21]))  # two images of each of two classes
        >>> support.flatten().tolist(), queries.flatten().tolist()
        ([10, 20], [11, 21])
        >>> scores = torch.tensor([[[0.8, 0.0], [0.0, 0.8]]])  # (tasks, queries, way)
        >>> round(method.cross_entropy(scores).item(), 4)  # log(1 + e^-0.8)
        0.3711
    """

    in_parts: ClassVar[bool] = True

    def __init__(self, context: Context, *, shot: int = 1, tasks: int = 1) -> None:
        super().__init__(context)
        self.tasks = tasks
        self.way, self.per_class = context.batch_classes, images_per_class(context, tasks)
        self.shot = shot
        if not 1 <= self.shot < self.per_class:
            raise ValueError(
                f"shot must be from 1 to {self.per_class - 1}, for a class has {self.per_class} images in a batch, "
                f"got {self.shot}"
            )

    def sampler(self, labels: Tensor, seed: int) -> Sampler:
        from rankshot.data.episode_batches import EpisodeSampler

        return EpisodeSampler(labels, self.way, self.per_class, self.tasks, seed=seed)

    @classmethod
    def batch_within(cls, counts: Sequence[int], classes: int, size: int, settings: Mapping[str, Any]) -> tuple[int, int]:
        tasks = int(settings.get("tasks", 1))
        way, per_class = min(classes, len(counts)), min(size // max(1, tasks * classes), *counts)
        return way, tasks * way * per_class

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        embeddings = self.embed(model, images)
        with torch.autocast(images.device.type, enabled=False):
            support, queries = self.split(computable(embeddings))
            return self.cross_entropy(self.scores(model, support, queries.flatten(1, 2))), embeddings

    def scores(self, model: Any, support: Tensor, queries: Tensor) -> Tensor:
        """The scores (tasks, Q, way) of queries (tasks, Q, D), by the network's rule."""
        scores: Tensor = model.class_scores(support, queries)
        return scores

    def decisive(self, tasks: Sequence[Any]) -> int:
        """The index of the task that decides: classification with as many shots as in training, with the most classes."""
        return by_classification(tasks, self.shot)

    def split(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Split a batch (B, …) into labelled images (tasks, way, shot, …) and queries (tasks, way, others, …)."""
        episodes = values.view(self.tasks, self.way, self.per_class, *values.shape[1:])
        return episodes[:, :, : self.shot], episodes[:, :, self.shot :]

    def cross_entropy(self, scores: Tensor) -> Tensor:
        """The mean cross-entropy of scores (tasks, queries, way), with the queries class by class."""
        right = torch.arange(self.way, device=scores.device).repeat_interleave(self.per_class - self.shot)
        return nn.functional.cross_entropy(scores.flatten(0, 1), right.repeat(len(scores)))


def images_per_class(context: Context, tasks: int) -> int:
    """Of each class of a batch that is so many episodes."""
    whole("tasks", tasks, 1, MOST_TASKS)
    together = tasks * context.batch_classes
    per_class, rest = divmod(context.batch_size, together)
    if rest or per_class < 2:
        of = f"{context.batch_classes} classes" if tasks == 1 else f"{tasks} episodes of {context.batch_classes} classes"
        raise ValueError(
            f"a batch of {context.batch_size} images cannot be {of} with as many images each, and 2 at least: "
            f"set batch_size to a multiple of {together}, {2 * together} or more"
        )
    return per_class
