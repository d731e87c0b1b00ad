"""Many episodes of several tasks, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rankshot import ranking
from rankshot.data import ImageSet

from .answerer import Answerer, EmbeddingAnswerer, embed, normalising_with
from .episodes import draw_episodes
from .rules import class_scores
from .tasks import Classification, Retrieval, Task

AT_ONCE = 2**23  # similarities of one chunk of episodes
IMAGES_AT_ONCE = 512
MOST_EPISODES = 1_000_000


@dataclass(frozen=True, eq=False)
class Result:
    """values (episodes,): the accuracy, or the mAP, of each episode, from 0 to 1."""

    task: Task
    values: Tensor

    @property
    def mean(self) -> float:
        return self.values.mean().item()

    @property
    def interval(self) -> float:
        """Half of the 95 % confidence interval of the mean."""
        return float(1.96 * self.values.std().item() / len(self.values) ** 0.5)

    def __str__(self) -> str:
        return f"{self.task}: {100 * self.mean:.2f} ± {100 * self.interval:.2f} %"


def summary(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """What files keep of results: task -> mean and interval."""
    return {str(each.task): {"mean": each.mean, "interval": each.interval} for each in results}


def evaluate(
    model: nn.Module | Answerer,
    images: ImageSet,
    tasks: Sequence[Task],
    episodes: int = 1000,
    seed: int = 0,
    norm: str = "running",
) -> list[Result]:
    """Every task on `episodes` episodes, which depend on the seed and the task alone.

    model   an embedding network, (B, C, H, W) float from 0 to 1 -> (B, D); or an `Answerer`, which cannot retrieve
    norm    "running": batch norm by running averages; each image is embedded once and all episodes are evaluated on these
            embeddings. "batch": by the statistics of the images embedded together, episode by episode (the support and the
            queries separately), as the paper did. An `Answerer` normalises as it pleases.
    """
    check_episodes(episodes)
    labels = torch.from_numpy(np.asarray(images.labels))
    drawn = [draw_episodes(labels, task, episodes, seed) for task in tasks]
    if not isinstance(model, nn.Module) or isinstance(model, Answerer):
        return [Result(task, _answered(model, images, task, each)) for task, each in zip(tasks, drawn, strict=True)]
    with normalising_with(model, norm):
        if norm == "batch":
            pairs = zip(tasks, drawn, strict=True)
            return [Result(task, _one_by_one(model, images, task, each)) for task, each in pairs]
        embeddings = embed_all(model, images)
        return [Result(task, _all_at_once(embeddings, task, each)) for task, each in zip(tasks, drawn, strict=True)]


def check_episodes(episodes: int) -> None:
    if not 2 <= episodes <= MOST_EPISODES:
        raise ValueError(f"episodes must be from 2, which an interval needs, to {MOST_EPISODES:,}, got {episodes}")


def embed_all(model: nn.Module, images: ImageSet, indices: Tensor | None = None) -> Tensor:
    """(n, D) unit vectors of all images, or of some of them, by running averages, where the model is."""
    indices = torch.arange(len(images)) if indices is None else indices
    with normalising_with(model, "running"):
        chunks = torch.split(indices, IMAGES_AT_ONCE)
        return torch.cat([embed(model, _pixels(images, some, model)) for some in chunks])


def _all_at_once(embeddings: Tensor, task: Task, drawn: Tensor) -> Tensor:
    per_episode = (task.way * task.per_class) ** 2
    chunks = torch.split(drawn.to(embeddings.device), max(1, AT_ONCE // per_episode))
    return torch.cat([_values(embeddings[some], task) for some in chunks]).cpu()


def _values(embeddings: Tensor, task: Task) -> Tensor:
    """(episodes, way, per_class, D) unit vectors -> (episodes,)."""
    if isinstance(task, Retrieval):
        pool = embeddings.flatten(1, 2)
        similarities = pool @ pool.mT
        masks = ranking.relevance_of(torch.arange(task.way, device=pool.device).repeat_interleave(task.per_class))
        relevance, valid = (mask.repeat(len(pool), 1) for mask in masks)
        values = ranking.average_precision(similarities.flatten(0, 1), relevance, valid)
        return values.view(len(pool), -1).mean(-1)
    support = embeddings[:, :, : task.shot].flatten(1, 2)
    queries = embeddings[:, :, task.shot :].flatten(1, 2)
    similarities = (queries @ support.mT).view(len(queries), -1, task.way, task.shot)
    return _accuracy(class_scores(similarities), task)


def _accuracy(scores: Tensor, task: Classification) -> Tensor:
    """(..., queries class by class, way) -> (...)."""
    right = torch.arange(task.way, device=scores.device).repeat_interleave(task.per_class - task.shot)
    return (scores.argmax(-1) == right).float().mean(-1)


def _one_by_one(model: nn.Module, images: ImageSet, task: Task, drawn: Tensor) -> Tensor:
    if isinstance(task, Classification):
        return _answered(EmbeddingAnswerer(model), images, task, drawn)
    shape = (1, task.way, task.per_class, -1)
    return torch.cat(
        [_values(embed(model, _pixels(images, each.flatten(), model)).view(shape), task).cpu() for each in drawn]
    )


def _answered(answerer: Answerer, images: ImageSet, task: Task, drawn: Tensor) -> Tensor:
    if not isinstance(task, Classification):
        raise ValueError(f"{task} needs an embedding network, but {type(answerer).__name__} only classifies")

    def answers() -> Iterator[Tensor]:
        for each in drawn:
            support, queries = (_pixels(images, part.flatten(), answerer) for part in each.split_with_sizes(sizes, dim=1))
            labels = torch.arange(task.way, device=support.device).repeat_interleave(task.shot)
            yield _accuracy(answerer.answer(support, labels, queries), task).cpu()

    sizes = [task.shot, task.per_class - task.shot]
    return torch.stack(list(answers()))


def _pixels(images: ImageSet, indices: Tensor, where: object) -> Tensor:
    """Images as float from 0 to 1, where the model is."""
    parameter = next(where.parameters(), None) if isinstance(where, nn.Module) else None
    chosen = torch.from_numpy(images.images[indices.numpy()])
    return chosen.to("cpu" if parameter is None else parameter.device).float() / 255
