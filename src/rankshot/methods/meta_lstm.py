"""Meta-Learner LSTM (Ravi and Larochelle, 2017): an LSTM takes the place of gradient descent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from rankshot.limits import whole
from rankshot.models.as_function import Statistics
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network

from .episodic import Episodic
from .learner import MOST_STEPS, Learner, TaskLearner, Weights
from .method import Context, register

HIDDEN = 20
SMALL = 10.0  # p: numbers under exp(-p) are told as they are, larger ones by their logarithm
NEWEST = 0.95  # what the statistics of a step count in their running mean


def pre_processed(values: Tensor) -> Tensor:
    """(…) -> (…, 2): log-magnitude and sign, both of about the size of 1.

    >>> pre_processed(torch.tensor([1.0, -math.exp(-5), 0.0]))
    tensor([[ 0.0000,  1.0000],
            [-0.5000, -1.0000],
            [-1.0000,  0.0000]])
    """
    size = values.abs()
    is_large = size >= math.exp(-SMALL)
    logarithm = torch.where(is_large, size.clamp(min=math.exp(-SMALL)).log() / SMALL, -1.0)
    sign = torch.where(is_large, values.sign(), math.exp(SMALL) * values)
    return torch.stack([logarithm, sign], -1)


class Updater(nn.Module):
    """An LSTM over the pre-processed gradient and loss, then gates: theta' = forget * theta - input * gradient.

    Every weight has a state of its own, and all share these parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTMCell(4, HIDDEN)
        self.forget, self.input = nn.Linear(HIDDEN + 2, 1), nn.Linear(HIDDEN + 2, 1)
        for gate, low, high in ((self.forget, 4.0, 6.0), (self.input, -5.0, -4.0)):  # to begin with, gradient descent
            nn.init.uniform_(gate.weight, -0.01, 0.01)
            nn.init.uniform_(gate.bias, low, high)

    def start(self, theta: Tensor) -> tuple[Tensor, ...]:
        """The states of (N,) weights: the LSTM's two, and both gates as they were last."""
        state = theta.new_zeros(len(theta), HIDDEN)
        return state, state, theta.new_zeros(len(theta), 1), theta.new_zeros(len(theta), 1)

    def forward(
        self, theta: Tensor, gradient: Tensor, loss: Tensor, states: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(N,) weights, their gradient and the loss, () or each its own, taken as given -> new weights, new states."""
        state, cell, forget, enter = states
        features = torch.cat([pre_processed(gradient), pre_processed(loss).expand(len(theta), 2)], -1)
        state, cell = self.lstm(features, (state, cell))
        forget = self.forget(torch.cat([state, theta[:, None], forget], -1)).sigmoid()
        enter = self.input(torch.cat([state, theta[:, None], enter], -1)).sigmoid()
        return forget.squeeze(-1) * theta - enter.squeeze(-1) * gradient, (state, cell, forget, enter)


def for_each(tasks: int, function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function says to each task, of inputs (T, …) however nested: `vmap`, which a single task has no need of."""
    if tasks > 1:
        return vmap(function)(*inputs)
    return _mapped(lambda tensor: tensor[None], function(*_mapped(lambda tensor: tensor[0], inputs)))


def _mapped(change: Callable[[Tensor], Tensor], nested: Any) -> Any:
    if isinstance(nested, Tensor):
        return change(nested)
    if isinstance(nested, Mapping):
        return {name: _mapped(change, part) for name, part in nested.items()}
    return type(nested)(_mapped(change, part) for part in nested)


def moved(running: Statistics, newest: Statistics) -> Statistics:
    """The running mean of each layer's mean and variance, one step on."""
    return [
        (torch.lerp(mean, new_mean, NEWEST), torch.lerp(variance, new_variance, NEWEST))
        for (mean, variance), (new_mean, new_variance) in zip(running, newest, strict=True)
    ]


@register_network("meta-lstm")
class LearningNetwork(TaskLearner):
    """Classifies with the weights that `steps` of the LSTM on the labelled images lead to.

    Batch norm as in the paper: the labelled images are normalised by their own statistics; at test the queries by the
    running mean of those over the steps, so that a task tells nothing to the next, and a query nothing to another. The last
    step counts most, for its weights are nearest to those that the queries meet.
    """

    def __init__(self, embedder: nn.Module, way: int = 5, steps: int = 12) -> None:
        super().__init__(Learner(embedder, way), numbers_a_weight=10 * HIDDEN)
        self.updater, self.steps = Updater(), whole("steps", steps, 1, MOST_STEPS)

    def learned(
        self, support_x: Tensor, support_y: Tensor, way: int, updater: Callable[..., Any] | None = None
    ) -> tuple[dict[str, Tensor], list[Statistics]]:
        """Labelled images (T, S, C, H, W) of tasks -> each task's weights after all steps, and each step's statistics.

        The weights are differentiable, but for the gradients they were given.

        updater   the same as `self.updater`, as torch.compile has made it faster
        """
        first = self.learner.weights()

        def loss_of(theta: Tensor, images: Tensor) -> tuple[Tensor, tuple[Tensor, list[tuple[Tensor, Tensor]]]]:
            logits, statistics = self.learner.logits(self._named(theta, first), images, way, derived_twice=False)
            loss = nn.functional.cross_entropy(logits, support_y)
            return loss, (loss, statistics)

        theta = torch.cat([weight.flatten() for weight in first.values()]).repeat(len(support_x), 1)
        states = self.updater.start(theta.flatten())
        seen: list[Statistics] = []
        for _ in range(self.steps):
            gradient, (loss, statistics) = for_each(len(theta), grad(loss_of, has_aux=True), theta.detach(), support_x)
            seen.append(statistics)
            of_each = loss[:, None].expand_as(theta).flatten()
            updated, states = (updater or self.updater)(theta.flatten(), gradient.flatten(), of_each, states)
            theta = updated.view_as(theta)
        return self._named(theta, first), seen

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        way = self.learner.way_of(support_y)

        def logits(weights: Weights, images: Tensor, statistics: Statistics) -> Tensor:
            return self.learner.logits(weights, images, way, statistics, derived_twice=False)[0]

        with torch.no_grad():
            weights, seen = self.learned(support_x, support_y, way)
            answers: Tensor = for_each(len(query_x), logits, weights, query_x, reduce(moved, seen))
            return answers

    @staticmethod
    def _named(theta: Tensor, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """(…, N) -> by name, with the same dimensions before those of each weight."""
        parts = torch.split(theta, [weight.numel() for weight in like.values()], dim=-1)
        named = zip(like.items(), parts, strict=True)
        return {name: part.view(*theta.shape[:-1], *weight.shape) for (name, weight), part in named}


@register(
    "meta-lstm",
    run_settings={"batch_classes": 5, "batch_size": 80, "clip": 0.25},
    presets={
        "omniglot": {"batch_classes": 5, "batch_size": 80, "filters": 32},
        "omniglot-5-shot": {"batch_classes": 5, "batch_size": 100, "filters": 32, "shot": 5, "steps": 5},
        "mini-imagenet": {"batch_classes": 5, "batch_size": 80, "filters": 32, "updates": 75_000},
        "mini-imagenet-5-shot": {
            "batch_classes": 5,
            "batch_size": 100,
            "filters": 32,
            "shot": 5,
            "steps": 5,
            "updates": 50_000,
        },
    },
)
class MetaLSTM(Episodic):
    """Meta-Learner LSTM (Ravi and Larochelle, 2017): an LSTM takes the place of gradient descent.

    It learns how to learn: the loss of the queries after the LSTM's steps on the labelled images.

    Args:
        context: what the method is made for.
        shot: labelled images a class of a training episode.
        steps: of the LSTM on a task.

    Examples:
        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, MetaLSTM
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=2, batch_size=4)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = MetaLSTM(context, steps=3).network(embedder)
        >>> support = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).view(2, 1, 1, 2)
        >>> scores = network.answer(support, torch.tensor([0, 1]), support)
        >>> scores.shape  # two queries, two classes
        torch.Size([2, 2])
        >>> sum(weight.numel() for weight in network.updater.parameters())  # shared by all weights of the classifier
        2126
    """

    mixed: ClassVar[bool] = False

    def __init__(self, context: Context, *, shot: int = 1, steps: int = 12) -> None:
        super().__init__(context, shot=shot)
        self.steps = whole("steps", steps, 1, MOST_STEPS)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "meta-lstm", way=self.way, steps=self.steps)

    def turn_of(self, model: nn.Module) -> Callable[..., Any]:
        assert isinstance(model, LearningNetwork)
        return model.updater.forward

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        assert isinstance(model, LearningNetwork)
        support, queries = self.split(images)
        of_support = torch.arange(self.way, device=images.device).repeat_interleave(self.shot)
        weights, _ = model.learned(support.flatten(1, 2), of_support, self.way, self.compiled_turn)

        def logits(weights: Weights, images: Tensor) -> Tensor:
            return model.learner.logits(weights, images, self.way, derived_twice=False)[0]

        return self.cross_entropy(for_each(len(queries), logits, weights, queries.flatten(1, 2))), None
