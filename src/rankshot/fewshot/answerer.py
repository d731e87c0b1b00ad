"""Who answers a few-shot question: anything that takes a support set and queries, and returns scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rankshot.vectors import computable, unit_vectors

from .rules import class_scores
from .tasks import Classification, Task


@runtime_checkable
class Answerer(Protocol):
    """Protocol: an object that answers classification episodes by itself, from a support set.

    A method that does not compare embeddings, such as MAML, is an `Answerer`. `evaluate` takes one in place of a network.

    Examples:
        One that answers by brightness: the class whose support images have the nearest mean:

        >>> import torch
        >>> from rankshot import fewshot
        >>> class ByBrightness:
        ...     def answer(self, support_x, support_y, query_x):
        ...         classes = torch.arange(int(support_y.max()) + 1)
        ...         means = torch.stack([support_x[support_y == label].mean() for label in classes])
        ...         return -(query_x.mean((1, 2, 3))[:, None] - means).abs()
        >>> isinstance(ByBrightness(), fewshot.Answerer)
        True
        >>> dark, bright = torch.zeros(1, 1, 4, 4), torch.ones(1, 1, 4, 4)
        >>> scores = ByBrightness().answer(torch.cat([dark, bright]), torch.tensor([0, 1]), 0.75 * bright)
        >>> scores  # -|0.75 - 0| and -|0.75 - 1|
        tensor([[-0.7500, -0.2500]])
        >>> scores.argmax(1)
        tensor([1])
    """

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        """Classify the queries of one episode. Every class has the same number of support images.

        Args:
            support_x: (S, C, H, W) float images from 0 to 1, the support set.
            support_y: (S,) their labels, from 0 to way - 1.
            query_x: (Q, C, H, W) float images from 0 to 1.

        Returns:
            (Q, way) scores; the largest is the answer.
        """
        ...


@runtime_checkable
class BatchAnswerer(Answerer, Protocol):
    """Answers several episodes at once, which a GPU does much faster. One that holds many numbers for each of them, beside
    the images, tells how many (`numbers_an_episode`), so that it is not given too many.
    """

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        """(E, S, C, H, W), the labels (S,) that all episodes share, (E, Q, C, H, W) -> (E, Q, way)."""
        ...


@runtime_checkable
class HasRule(Protocol):
    """Protocol: an embedding network that classifies by a rule of its own instead of the paper's.

    Examples:
        A network whose rule is the squared distance to the class mean, as in prototypical networks:

        >>> import torch
        >>> from rankshot import fewshot
        >>> class ByMeans(torch.nn.Flatten):
        ...     def class_scores(self, support, queries):
        ...         return -(queries[:, :, None] - support.mean(2)[:, None]).square().sum(-1)
        >>> isinstance(ByMeans(), fewshot.HasRule)
        True
        >>> support = torch.tensor([[[[0.0], [0.2]], [[0.8], [1.0]]]])  # 1 episode, 2 classes, 2 shots, 1 dimension
        >>> ByMeans().class_scores(support, torch.tensor([[[0.4]]]))  # -(0.4 - 0.1)^2 and -(0.4 - 0.9)^2
        tensor([[[-0.0900, -0.2500]]])
    """

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """The scores of the classes for the queries of E episodes.

        Args:
            support: (E, way, shot, D) embeddings of the support sets, as the network gives them.
            queries: (E, Q, D) embeddings of the queries.

        Returns:
            (E, Q, way) scores; the largest is the answer.
        """
        ...


def can_answer(model: object, task: Task) -> bool:
    """Whether a model can do a task.

    An `Answerer` classifies and does not retrieve. A model may also have a largest number of classes (`most_ways`).

    Args:
        model: an embedding network or an `Answerer`.
        task: a `Classification` or a `Retrieval`.

    Returns:
        True if `evaluate` takes the model for this task.

    Examples:
        >>> from torch import nn
        >>> from rankshot import fewshot
        >>> network = nn.Flatten()
        >>> fewshot.can_answer(network, fewshot.Retrieval(way=5))
        True
        >>> fewshot.can_answer(fewshot.EmbeddingAnswerer(network), fewshot.Retrieval(way=5))
        False
    """
    if not isinstance(task, Classification):
        return not isinstance(model, Answerer)
    return task.way <= getattr(model, "most_ways", task.way)


class EmbeddingAnswerer(nn.Module):
    """An embedding network as an `Answerer`, by the paper's rule.

    With one support image a class, a query is of the class of the most similar one. With several, it is of the class
    whose support images it ranks best, by average precision (see `class_scores`). A network with a rule of its own
    (`HasRule`) answers by that.

    Args:
        model: the network, (B, C, H, W) float images from 0 to 1 -> (B, D).

    Examples:
        Images of two pixels, which are their own embeddings:

        >>> import torch
        >>> from rankshot import fewshot
        >>> answerer = fewshot.EmbeddingAnswerer(torch.nn.Flatten())
        >>> support = torch.tensor([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])  # (2, 1, 1, 2): one image a class
        >>> answerer.answer(support, torch.tensor([0, 1]), torch.tensor([[[[0.8, 0.6]]]]))  # cosines with each class
        tensor([[0.8000, 0.6000]])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        """Classify the queries of one episode; the support set and the queries are embedded as two batches.

        Args:
            support_x: (S, C, H, W) float images from 0 to 1.
            support_y: (S,) their labels, from 0 to way - 1.
            query_x: (Q, C, H, W) float images from 0 to 1.

        Returns:
            (Q, way) scores; the largest is the answer.
        """
        way = int(support_y.max()) + 1
        support = embed(self.model, support_x)[support_y.argsort(stable=True)]
        queries = embed(self.model, query_x)
        if isinstance(self.model, HasRule):
            with torch.no_grad():
                return self.model.class_scores(support.view(1, way, -1, support.shape[1]), queries[None])[0]
        return class_scores((queries @ support.T).view(len(query_x), way, -1))


def embed(model: nn.Module, images: Tensor) -> Tensor:
    """(B, C, H, W) float -> (B, D) without a graph: unit vectors, where a zero embedding stays zero.

    A network with a rule of its own (`HasRule`) gets its embeddings as they are.
    """
    with torch.no_grad():
        return computable(model(images)) if isinstance(model, HasRule) else unit_vectors(model(images))


def check_batch_norm(mode: str) -> None:
    if mode not in ("running", "batch"):
        raise ValueError(f"unknown batch_norm {mode!r}: use 'running' or 'batch'")


@contextmanager
def normalising_with(model: nn.Module, norm: str, groups: int = 1) -> Iterator[None]:
    """Batch norm by its running averages ("running") or by each batch's own statistics ("batch"); restored after.

    With `groups`, a batch is so many batches one after the other, each normalised by its own statistics. Running averages
    are read or left alone, never changed.
    """
    check_batch_norm(norm)
    modes = [(module, module.training) for module in model.modules()]
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    try:
        model.eval()
        if norm == "batch":
            for layer in layers:
                layer.forward = partial(_by_group, layer, groups)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)
        for module, mode in modes:
            module.training = mode


def _by_group(layer: _BatchNorm, groups: int, values: Tensor) -> Tensor:
    """(groups * B, C, …) -> the same, normalised group by group, channel by channel."""
    grouped = values.view(groups, -1, *values.shape[1:])
    variance, mean = torch.var_mean(grouped, (1, *range(3, grouped.dim())), correction=0, keepdim=True)
    by_channel = (-1, *[1] * (values.dim() - 2))
    factor = (variance + layer.eps).rsqrt()
    if layer.weight is None:
        return ((grouped - mean) * factor).flatten(0, 1)
    factor = factor * layer.weight.view(by_channel)
    return torch.addcmul(layer.bias.view(by_channel) - mean * factor, grouped, factor).flatten(0, 1)
