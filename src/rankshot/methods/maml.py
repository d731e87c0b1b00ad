"""MAML (Finn et al., 2017): weights from which a few steps of gradient descent learn a task."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from rankshot.limits import positive, whole
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network

from .episodic import Episodic
from .learner import MOST_STEPS, Learner, TaskLearner, Weights
from .method import Context, register

# The authors' code sums a task's loss over its classes, and here it is their mean: for steps as long as theirs, the rate is
# that of the paper times the number of classes. Numbers of updates are the paper's.
AS_IN_THEIR_CODE: dict[str, Any] = {"adapt_norm": False, "updates": 60_000}
STRIDED: dict[str, Any] = {"network": "conv4-strided", **AS_IN_THEIR_CODE}
OF_20: dict[str, Any] = {"batch_classes": 20, "tasks": 16, "steps": 5, "rate": 0.1 * 20, "test_steps": 5, **STRIDED}
OF_5: dict[str, Any] = {"batch_classes": 5, "tasks": 32, "rate": 0.4 * 5, **STRIDED}
OF_MINI_IMAGENET: dict[str, Any] = {
    "batch_classes": 5,
    "filters": 32,
    "steps": 5,
    "rate": 0.01 * 5,
    "test_steps": 10,
    **AS_IN_THEIR_CODE,
}


@register_network("maml")
class AdaptingNetwork(TaskLearner):
    """Classifies with the weights that `steps` of gradient descent on the labelled images lead to.

    All images of a task are normalised by their own statistics, the labelled ones and the queries separately, as in the
    paper: the queries of a task are thus answered together. Without `adapt_norm` the scales and shifts of batch norm are
    the same for all tasks.
    """

    def __init__(
        self, embedder: nn.Module, way: int = 5, rate: float = 0.4, steps: int = 3, adapt_norm: bool = True
    ) -> None:
        super().__init__(Learner(embedder, way), numbers_a_weight=10)
        self.rate, self.steps = positive("rate", rate), whole("steps", steps, 1, MOST_STEPS)
        self.shared = [] if adapt_norm else self.learner.of_norms()
        if not adapt_norm and not self.shared:
            raise ValueError("this network has no batch norm that tasks could share: leave out adapt_norm")

    def adapted(self, support_x: Tensor, support_y: Tensor, way: int, steps: int, *, first_order: bool = False) -> Weights:
        """The weights after so many steps; differentiable by those that they start from, unless `first_order`."""
        weights = self.learner.weights()
        shared = {name: weights.pop(name) for name in self.shared}

        def given(weights: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: weight.detach() for name, weight in weights.items()} if first_order else weights

        def loss_of(weights: dict[str, Tensor]) -> Tensor:
            logits = self.learner.logits(given(shared) | weights, support_x, way)[0]
            return nn.functional.cross_entropy(logits, support_y)

        for _ in range(steps):
            gradients = grad(loss_of)(given(weights))
            weights = {name: weight.add(gradients[name], alpha=-self.rate) for name, weight in weights.items()}
        return shared | weights

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        way = self.learner.way_of(support_y)

        def logits(support: Tensor, queries: Tensor) -> Tensor:
            weights = self.adapted(support, support_y, way, self.steps, first_order=True)
            return self.learner.logits(weights, queries, way)[0]

        with torch.no_grad():
            answers: Tensor = vmap(logits)(support_x, query_x)
            return answers


@register(
    "maml",
    run_settings={"batch_classes": 5, "batch_size": 120},
    presets={
        "omniglot": {"batch_size": 320, **OF_5},
        "omniglot-20-way": {"batch_size": 640, **OF_20},
        "omniglot-5-shot": {"batch_size": 1600, "shot": 5, **OF_5},
        "omniglot-20-way-5-shot": {"batch_size": 3200, "shot": 5, **OF_20},
        "mini-imagenet": {"batch_size": 320, "tasks": 4, **OF_MINI_IMAGENET},
        "mini-imagenet-5-shot": {"batch_size": 200, "tasks": 2, "shot": 5, **OF_MINI_IMAGENET},
    },
)
class MAML(Episodic):
    """MAML (Finn et al., 2017): weights from which a few steps of gradient descent learn a task.

    It trains through the steps that it will take: the loss of the queries after the steps on the labelled images.

    Args:
        context: what the method is made for.
        tasks: episodes in a batch.
        shot: labelled images a class of a training episode.
        steps: of gradient descent on a task while it learns.
        rate: of these steps.
        test_steps: steps when it is asked.
        first_order: no second derivatives.
        adapt_norm: the steps change the scales and shifts of batch norm too; else these are the same for all tasks.

    Examples:
        A classifier that starts from zero takes one step on two labelled images:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import MAML, Context
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=2, batch_size=4)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = MAML(context, tasks=1, rate=0.4, test_steps=1).network(embedder)
        >>> for weight in network.parameters():
        ...     _ = torch.nn.init.zeros_(weight)
        >>> support = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).view(2, 1, 1, 2)
        >>> query = torch.tensor([0.8, 0.6]).view(1, 1, 1, 2)
        >>> network.answer(support, torch.tensor([0, 1]), query)  # weights (0.1, -0.1) and (-0.1, 0.1)
        tensor([[ 0.0200, -0.0200]])
    """

    mixed: ClassVar[bool] = False

    def __init__(
        self,
        context: Context,
        *,
        tasks: int = 4,
        shot: int = 1,
        steps: int = 1,
        rate: float = 0.4,
        test_steps: int = 3,
        first_order: bool = False,
        adapt_norm: bool = True,
    ) -> None:
        super().__init__(context, shot=shot, tasks=tasks)
        self.steps = whole("steps", steps, 1, MOST_STEPS)
        self.test_steps = whole("test_steps", test_steps, 1, MOST_STEPS)
        self.rate, self.first_order, self.adapt_norm = positive("rate", rate), first_order, adapt_norm

    def network(self, embedder: nn.Module) -> nn.Module:
        settings = {"way": self.way, "rate": self.rate, "steps": self.test_steps, "adapt_norm": self.adapt_norm}
        return build_around(embedder, "maml", **settings)

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """The loss of all tasks of the batch at once; not in bfloat16, which is too coarse for second derivatives."""
        assert isinstance(model, AdaptingNetwork)
        support, queries = self.split(images.contiguous())
        of_support, of_queries = (
            torch.arange(self.way, device=images.device).repeat_interleave(count)
            for count in (self.shot, self.per_class - self.shot)
        )

        def loss_of(support_x: Tensor, query_x: Tensor) -> Tensor:
            weights = model.adapted(support_x, of_support, self.way, self.steps, first_order=self.first_order)
            return nn.functional.cross_entropy(model.learner.logits(weights, query_x, self.way)[0], of_queries)

        return vmap(loss_of)(support.flatten(1, 2), queries.flatten(1, 2)).mean(), None
