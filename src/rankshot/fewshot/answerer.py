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
    """Answers classification episodes."""

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        """Images (S, C, H, W) of labels 0 … way - 1 (S,), images (Q, C, H, W) -> (Q, way) scores, the largest the answer.

        Images are float, from 0 to 1. Every class has the same number of support images.
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
    """An embedding network that classifies by a rule of its own instead of the paper's."""

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """Embeddings (E, way, shot, D) and (E, Q, D), of so many episodes -> (E, Q, way) scores, the largest the answer."""
        ...


def can_answer(model: object, task: Task) -> bool:
    """An `Answerer` only classifies; and some classify among no more than so many classes (`most_ways`)."""
    if not isinstance(task, Classification):
        return not isinstance(model, Answerer)
    return task.way <= getattr(model, "most_ways", task.way)


class EmbeddingAnswerer(nn.Module):
    """An embedding network with the paper's rule: the nearest representative, or average precision with several.

    A network with a rule of its own (`HasRule`) answers by that.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        """The support and the queries are embedded separately, as two batches."""
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
