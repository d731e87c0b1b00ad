"""Conv4 with a classifier on top, as a function of its weights: what the systems that learn anew for every task change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.models.conv4 import SMALLEST, Conv4
from rankshot.models.pretrained import build

from .derivable import convolved, pooled

MOST_STEPS = 1000  # that a task is learned in
Weights = Mapping[str, Tensor]
Statistics = Sequence[tuple[Tensor, Tensor]]  # mean and variance of every layer


class Learner(nn.Module):
    """The weights that a task begins with. `way` is how many classes it can tell apart."""

    def __init__(self, embedder: Mapping[str, Any], dimensions: int, way: int) -> None:
        super().__init__()
        network = build(embedder)
        if not isinstance(network, Conv4):
            raise ValueError(f"only a plain Conv4 can be learned anew for a task, got {dict(embedder)}")
        if way < 2:
            raise ValueError(f"way must be 2 or more, got {way}")
        self.network, self.head = network, nn.Linear(dimensions, way)
        self.way = way
        norms = [each for each in network.modules() if isinstance(each, nn.BatchNorm2d)]
        self.eps = [each.eps for each in norms]
        for norm in norms:  # a task is normalised by itself: there is nothing to average over tasks
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = norm.num_batches_tracked = None

    def weights(self) -> dict[str, Tensor]:
        return dict(self.named_parameters())

    def way_of(self, labels: Tensor) -> int:
        """How many classes a task has, by its labels."""
        way = int(labels.max()) + 1
        if way > self.way:
            raise ValueError(f"this network was made for tasks of up to {self.way} classes, got {way}")
        return way

    def logits(
        self, weights: Weights, images: Tensor, way: int, known: Statistics | None = None, *, derived_twice: bool = True
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """(B, C, H, W) -> (B, way), and each layer's mean and variance over these images.

        known           statistics to normalise by, instead of those of these images
        derived_twice   gradients have gradients too; else it takes fewer steps
        """
        values = images
        height, width = images.shape[-2:]
        channels, expected = weights["network.0.0.weight"].shape[1], weights["head.weight"].shape[1]
        if images.shape[-3] != channels:
            raise ValueError(f"this network was made for images of {channels} channels, got {images.shape[-3]}")
        if min(height, width) < SMALLEST:
            raise ValueError(f"images must be of at least {SMALLEST}x{SMALLEST} pixels, got {height}x{width}")
        found = []
        for place, eps in enumerate(self.eps):
            name = f"network.{place}"
            filters, scale, shift = (weights[f"{name}.{each}"] for each in ("0.weight", "1.weight", "1.bias"))
            layer = block if derived_twice else fused_block
            values, statistics = layer(values, filters, scale, shift, eps, known[place] if known else None)
            found.append(statistics)
        values = values.flatten(1)
        if values.shape[1] != expected:
            raise ValueError(f"this network was made for images of another size than {height}x{width}")
        logits = nn.functional.linear(values, weights["head.weight"][:way], weights["head.bias"][:way])
        return logits, found


class LearningAnew(nn.Module):
    """A network that learns every task anew, so it classifies and has no embeddings.

    held  numbers that it holds of each weight while it learns a task
    """

    def __init__(self, learner: Learner, held: int) -> None:
        super().__init__()
        self.learner, self.most_ways = learner, learner.way
        self.held_an_episode = held * sum(each.numel() for each in learner.parameters())

    def forward(self, images: Tensor) -> Tensor:
        raise ValueError("this network learns every task anew and has no embeddings: ask its `answer`")

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        return self.answer_all(support_x[None], support_y, query_x[None])[0]

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        raise NotImplementedError


def block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Convolution, batch norm, maximum of 2 x 2, ReLU; and the mean and variance of the convolution's results.

    The norm comes after the maximum, where there are a quarter as many values: a rising line does not change which one is
    the largest. Where it falls, by a negative scale, scale and filters both change their sign.
    """
    sign = torch.copysign(scale.new_ones(()), scale.detach())
    largest, mean, variance = pooled(convolved(values, filters * sign[:, None, None, None]))
    by_mean, by_variance = (mean, variance) if known is None else (known[0] * sign, known[1])
    factor = scale * sign * (by_variance + eps).rsqrt()
    start = shift - by_mean * factor
    normal = largest * factor[:, None, None] + start[:, None, None]
    return nn.functional.relu(normal), (mean * sign, variance)


def fused_block(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same by the batch norm of torch, in far fewer steps. Under `vmap` its second derivatives are wrong."""
    values = nn.functional.conv2d(values, filters, padding=1)
    normal, mean, sharpness = torch.native_batch_norm(values, scale, shift, None, None, True, 0.0, eps)
    if known is not None:
        normal = nn.functional.batch_norm(values, *known, scale, shift, eps=eps)
    return nn.functional.relu(nn.functional.max_pool2d(normal, 2)), (mean, sharpness.pow(-2) - eps)
