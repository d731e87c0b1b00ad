"""Many episodes of several tasks, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankshot import ranking
from rankshot.data import ImageSet
from rankshot.gathering import part_of, whole_of, world_size
from rankshot.limits import whole
from rankshot.models.largest_layer import images_at_once, largest_layer
from rankshot.ranking.checks import tensor_of
from rankshot.vectors import unit_vectors

from .answerer import Answerer, BatchAnswerer, HasRule, check_batch_norm, embed, normalising_with
from .episodes import MOST_EPISODES, draw_episodes
from .rules import check_rule, scores_by
from .tasks import Classification, Retrieval, Task

AT_ONCE = {"cpu": 2**23, "cuda": 2**26}  # similarities of one chunk of episodes
NUMBERS_AT_ONCE = {"cpu": 2**27, "cuda": 2**31}  # numbers that an `BatchAnswerer` holds beside the images
KEPT_ON_DEVICE = 2**33  # bytes of images


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a task: one value an episode.

    Attributes:
        task: what was measured.
        values: (episodes,) the accuracy (classification) or mAP (retrieval) of each episode, from 0 to 1.

    Examples:
        >>> import torch
        >>> from rankshot import fewshot
        >>> result = fewshot.Result(fewshot.Classification(way=5, shot=1), torch.tensor([0.8, 0.9, 0.7, 1.0]))
        >>> print(result)  # 1.96 * 0.1291 / sqrt(4) = 0.1265
        1-shot 5-way: 85.00 ± 12.65 %
    """

    task: Task
    values: Tensor

    @property
    def mean(self) -> float:
        """The mean over the episodes, from 0 to 1."""
        return self.values.mean().item()

    @property
    def interval(self) -> float:
        """Half of the 95 % confidence interval of the mean."""
        return float(1.96 * self.values.std().item() / len(self.values) ** 0.5)

    def __str__(self) -> str:
        return f"{self.task}: {100 * self.mean:.2f} ± {100 * self.interval:.2f} %"


def summary(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Results as plain numbers, for a JSON file.

    Args:
        results: those of `evaluate`.

    Returns:
        {task: {"mean": …, "interval": …}}, from 0 to 1.

    Examples:
        >>> import torch
        >>> from rankshot import fewshot
        >>> result = fewshot.Result(fewshot.Retrieval(way=5), torch.tensor([0.5, 0.5, 0.5]))
        >>> fewshot.summary([result])
        {'retrieval 5-way': {'mean': 0.5, 'interval': 0.0}}
    """
    return {str(result.task): {"mean": result.mean, "interval": result.interval} for result in results}


def evaluate(
    model: nn.Module | Answerer,
    images: ImageSet,
    tasks: Sequence[Task],
    episodes: int = 1000,
    seed: int = 0,
    batch_norm: str = "running",
    pixels: Tensor | None = None,
    rule: str | None = None,
    together: bool = False,
) -> list[Result]:
    """Evaluate a model on few-shot tasks, over many episodes.

    The episodes depend on the seed and the task alone: two models are measured on the same ones.

    Args:
        model: an embedding network, (B, C, H, W) float images from 0 to 1 -> (B, D); or an `Answerer`, which classifies
            only.
        images: the data set, of classes that were not in training.
        tasks: what to measure.
        episodes: of each task, at least 2.
        seed: of the episodes.
        batch_norm: "running": by running averages; each image is embedded once, and all episodes use these embeddings.
            "batch": by the statistics of the images that are embedded together, episode by episode (the support set and
            the queries separately), as in the paper. An `Answerer` normalises in its own way.
        pixels: the images on the model's device, from `pixels_for`; saves time where one evaluates often.
        rule: how an embedding network classifies: "ap" (the paper's), "nearest", "prototype" or "logistic". None: by its
            own rule if it has one (`HasRule`), else by the paper's.
        together: share the work between all processes of `torch.distributed`, each of which calls this with the same
            arguments.

    Returns:
        A `Result` for each task.

    Raises:
        ValueError: if a setting is unknown or out of range, there are too few classes or images for a task, or an
            `Answerer` is given a rule or a retrieval task.

    Examples:
        Images that are bright on the left or on the right, and a network whose embeddings are the pixels:

        >>> import numpy as np
        >>> import torch
        >>> from rankshot import data, fewshot
        >>> left, right = np.array([[200, 20]], np.uint8), np.array([[20, 200]], np.uint8)
        >>> pixels = np.stack([left] * 20 + [right] * 20)[:, None]  # (40, 1, 1, 2)
        >>> images = data.ImageSet(pixels, np.repeat([0, 1], 20), ("left", "right"))
        >>> tasks = [fewshot.Classification(way=2, shot=1), fewshot.Retrieval(way=2)]
        >>> for result in fewshot.evaluate(torch.nn.Flatten(), images, tasks, episodes=10):
        ...     print(result)
        1-shot 2-way: 100.00 ± 0.00 %
        retrieval 2-way: 100.00 ± 0.00 %
    """
    check_episodes(episodes)
    check_batch_norm(batch_norm)
    if rule is not None:
        check_rule(rule)
    labels = torch.from_numpy(np.asarray(images.labels))
    drawn = [draw_episodes(labels, task, episodes, seed) for task in tasks]
    pixels = pixels_for(model, images) if pixels is None else pixels
    if not isinstance(model, nn.Module) or isinstance(model, Answerer):
        if rule is not None:
            raise ValueError(f"{type(model).__name__} classifies in its own way: it takes no rule, got {rule!r}")
        values = partial(_answered, model, pixels)
    elif batch_norm == "batch":
        values = partial(_in_groups, model, pixels, rule)
    else:
        every = torch.arange(len(images))
        values = partial(_all_at_once, _shared(partial(_embedded, model, pixels), every, together), model, rule)
    return [
        Result(task, _shared(partial(values, task), indices, together)) for task, indices in zip(tasks, drawn, strict=True)
    ]


def evaluate_embeddings(
    embeddings: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any],
    tasks: Sequence[Task],
    episodes: int = 1000,
    seed: int = 0,
    rule: str = "ap",
) -> list[Result]:
    """As `evaluate`, on embeddings that are there already. The episodes are the same.

    Args:
        embeddings: (n, D) float, a tensor or a NumPy array; need not be normalised.
        labels: (n,) integers, the class of each, a tensor or a NumPy array.
        tasks: what to measure.
        episodes: of each task, at least 2.
        seed: of the episodes.
        rule: how queries are classified: "ap" (the paper's), "nearest", "prototype" or "logistic".

    Returns:
        A `Result` for each task.

    Raises:
        TypeError: if embeddings are not floating point, or labels are not integers.
        ValueError: if shapes do not fit, the rule is unknown, or there are too few classes or images for a task.

    Examples:
        Four classes in four orthogonal directions are told apart without mistakes:

        >>> import torch
        >>> from rankshot import fewshot
        >>> vectors, labels = torch.eye(4).repeat_interleave(20, 0), torch.arange(4).repeat_interleave(20)
        >>> tasks = [fewshot.Classification(way=3, shot=1), fewshot.Retrieval(way=4)]
        >>> for result in fewshot.evaluate_embeddings(vectors, labels, tasks, episodes=10):
        ...     print(result)
        1-shot 3-way: 100.00 ± 0.00 %
        retrieval 4-way: 100.00 ± 0.00 %
    """
    check_episodes(episodes)
    check_rule(rule)
    embeddings, labels = tensor_of("embeddings", embeddings), tensor_of("labels", labels)
    if embeddings.dim() != 2 or labels.shape != embeddings.shape[:1]:
        got = f"{tuple(embeddings.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"embeddings must be (n, D), with a label for each, (n,), got {got}")
    if not embeddings.is_floating_point():
        raise TypeError(f"embeddings must be floating point, got {embeddings.dtype}")
    vectors, no_rule = unit_vectors(embeddings), nn.Identity()
    drawn = [draw_episodes(labels.cpu(), task, episodes, seed) for task in tasks]
    return [
        Result(task, _all_at_once(vectors, no_rule, rule, task, indices))
        for task, indices in zip(tasks, drawn, strict=True)
    ]


def _shared(compute: Callable[[Tensor], Tensor], items: Tensor, together: bool) -> Tensor:
    """compute(items), which has a row for each of them; with `together` each process computes a part of the rows."""
    if not together or len(items) < world_size():
        return compute(items)
    return whole_of(compute(part_of(items)), len(items))


def check_episodes(episodes: int) -> None:
    """Two at least, since one has no interval."""
    whole("episodes", episodes, 2, MOST_EPISODES)


def pixels_for(model: object, images: ImageSet) -> Tensor:
    """All images of a data set as one tensor, on the device of the model.

    More than 8 GiB of images stay where they are.

    Args:
        model: a network or an `Answerer`.
        images: the data set.

    Returns:
        (n, C, H, W) uint8.

    Examples:
        >>> import numpy as np
        >>> import torch
        >>> from rankshot import data, fewshot
        >>> images = data.ImageSet(np.full((2, 1, 4, 4), 255, np.uint8), np.array([0, 1]), ("a", "b"))
        >>> pixels = fewshot.pixels_for(torch.nn.Flatten(), images)
        >>> pixels.shape, pixels.dtype, pixels.device.type
        (torch.Size([2, 1, 4, 4]), torch.uint8, 'cpu')
    """
    pixels = images.pixels()
    return pixels.to(_device_of(model)) if pixels.numel() <= KEPT_ON_DEVICE else pixels


def embed_all(model: nn.Module, images: ImageSet, indices: Tensor | None = None) -> Tensor:
    """The embeddings of all images of a data set, as unit vectors. Batch norm uses its running averages.

    Args:
        model: an embedding network.
        images: the data set.
        indices: (m,) int64, which images. None: all.

    Returns:
        (n, D) or (m, D) float on the device of the model.

    Examples:
        >>> import numpy as np
        >>> import torch
        >>> from rankshot import data, fewshot
        >>> pixels = np.array([[[[30, 40]]], [[[0, 200]]]], np.uint8)  # (2, 1, 1, 2)
        >>> images = data.ImageSet(pixels, np.array([0, 1]), ("a", "b"))
        >>> fewshot.embed_all(torch.nn.Flatten(), images)  # (30, 40) / 50 and (0, 200) / 200
        tensor([[0.6000, 0.8000],
                [0.0000, 1.0000]])
    """
    indices = torch.arange(len(images)) if indices is None else indices
    return unit_vectors(_embedded(model, images.pixels(), indices))


def _embedded(model: nn.Module, pixels: Tensor, indices: Tensor) -> Tensor:
    with normalising_with(model, "running"):
        chunks = torch.split(indices, _images_at_once(model, pixels))
        return torch.cat([embed(model, _chosen(pixels, chunk, model)) for chunk in chunks])


def _all_at_once(embeddings: Tensor, model: nn.Module, rule: str | None, task: Task, drawn: Tensor) -> Tensor:
    images = task.way * task.per_class
    per_episode = images**2
    if rule is not None or isinstance(model, HasRule):  # it may do anything with the embeddings
        per_episode = max(per_episode, 2 * images * embeddings.shape[1])
    chunks = torch.split(drawn.to(embeddings.device), max(1, _at_once(AT_ONCE, embeddings.device) // per_episode))
    return torch.cat([_values(embeddings[chunk], task, model, rule) for chunk in chunks]).cpu()


@torch.no_grad()
def _values(embeddings: Tensor, task: Task, model: nn.Module, rule: str | None) -> Tensor:
    """(episodes, way, per_class, D) as `embed` has them -> (episodes,)."""
    if isinstance(task, Retrieval):
        pool = unit_vectors(embeddings.flatten(1, 2)) if isinstance(model, HasRule) else embeddings.flatten(1, 2)
        similarities = pool @ pool.mT
        masks = ranking.relevance_of(torch.arange(task.way, device=pool.device).repeat_interleave(task.per_class))
        relevance, valid = (mask.repeat(len(pool), 1) for mask in masks)
        values = ranking.average_precision(similarities.flatten(0, 1), relevance, valid)
        return values.view(len(pool), -1).mean(-1)
    if rule is None and isinstance(model, HasRule):
        return _accuracy(
            model.class_scores(embeddings[:, :, : task.shot], embeddings[:, :, task.shot :].flatten(1, 2)), task
        )
    vectors = unit_vectors(embeddings) if isinstance(model, HasRule) else embeddings
    support, queries = vectors[:, :, : task.shot].flatten(1, 2), vectors[:, :, task.shot :].flatten(1, 2)
    labels = torch.arange(task.way, device=support.device).repeat_interleave(task.shot)
    return _accuracy(scores_by(rule or "ap", support, labels, task.way, queries), task)


def _accuracy(scores: Tensor, task: Classification) -> Tensor:
    """(..., queries class by class, way) -> (...)."""
    right = torch.arange(task.way, device=scores.device).repeat_interleave(task.per_class - task.shot)
    return (scores.argmax(-1) == right).float().mean(-1)


def _in_groups(model: nn.Module, pixels: Tensor, rule: str | None, task: Task, drawn: Tensor) -> Tensor:
    """Some episodes at a time, each normalised by itself: its support and its queries, or its whole pool."""
    cuts = [task.shot, task.per_class - task.shot] if isinstance(task, Classification) else [task.per_class]

    def embedded(part: Tensor) -> Tensor:
        with normalising_with(model, "batch", groups=len(part)):
            return embed(model, _chosen(pixels, part.flatten(), model)).view(*part.shape, -1)

    chunks = torch.split(drawn, max(1, _images_at_once(model, pixels) // (task.way * task.per_class)))
    joined = (torch.cat([embedded(part) for part in chunk.split_with_sizes(cuts, dim=2)], dim=2) for chunk in chunks)
    return torch.cat([_values(embeddings, task, model, rule).cpu() for embeddings in _in_fewer(joined)])


def _in_fewer(parts: Iterable[Tensor]) -> Iterator[Tensor]:
    """The same in larger parts: images are embedded a few episodes at a time, but a rule may take no longer for many.

    parts   (episodes, way, per_class, D)
    """
    held: list[Tensor] = []
    for part in parts:
        held.append(part)
        images = part.shape[1] * part.shape[2]
        if sum(map(len, held)) * images * max(images, part.shape[3]) >= _at_once(AT_ONCE, part.device):
            yield torch.cat(held)
            held = []
    if held:
        yield torch.cat(held)


def _answered(answerer: Answerer, pixels: Tensor, task: Task, drawn: Tensor) -> Tensor:
    if not isinstance(task, Classification):
        raise ValueError(f"{task} needs an embedding network, but {type(answerer).__name__} only classifies")

    labels = torch.arange(task.way, device=_device_of(answerer)).repeat_interleave(task.shot)

    def answers(episodes: Tensor) -> Tensor:
        parts = (part.flatten(1) for part in episodes.split_with_sizes([task.shot, task.per_class - task.shot], dim=2))
        support, queries = (_chosen(pixels, part, answerer) for part in parts)
        if isinstance(answerer, BatchAnswerer):
            return answerer.answer_all(support, labels, queries)
        return torch.stack([answerer.answer(one, labels, other) for one, other in zip(support, queries, strict=True)])

    at_once = _images_at_once(answerer, pixels) // (task.way * task.per_class)
    if held := getattr(answerer, "numbers_an_episode", 0):
        at_once = min(at_once, _at_once(NUMBERS_AT_ONCE, _device_of(answerer)) // held)
    chunks = torch.split(drawn, max(1, at_once))
    return torch.cat([_accuracy(answers(chunk), task).cpu() for chunk in chunks])


def _chosen(pixels: Tensor, indices: Tensor, model: object) -> Tensor:
    """Some images as float from 0 to 1, where the model is."""
    return pixels[indices.to(pixels.device)].to(_device_of(model)).float() / 255


def _device_of(model: object) -> torch.device:
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device


def _at_once(most: Mapping[str, int], device: torch.device) -> int:
    return most.get(device.type, most["cpu"])


def _images_at_once(model: object, pixels: Tensor) -> int:
    shape = (pixels.shape[1], pixels.shape[2], pixels.shape[3])
    is_network = isinstance(model, nn.Module) and not isinstance(model, Answerer)
    numbers = largest_layer(model, shape) if is_network else 0  # type: ignore[arg-type]
    if not numbers:
        kernels = [weight for weight in model.parameters() if weight.dim() == 4] if isinstance(model, nn.Module) else []
        numbers = max([0, *(len(kernel) for kernel in kernels)]) * shape[1] * shape[2]
    return images_at_once(numbers, shape, _device_of(model))
