"""A network with a classifier on top, as a function of its weights: what systems change that learn every task anew."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from rankshot.models.as_function import Statistics, TaskNorm, as_function, prepare
from rankshot.models.headed import Headed
from rankshot.models.mirrored import Mirrored

MOST_STEPS = 1000  # that a task is learned in
Weights = Mapping[str, Tensor]


class Learner(nn.Module):
    """The weights that a task begins with. `way` is how many classes it can tell apart."""

    def __init__(self, embedder: nn.Module, way: int) -> None:
        super().__init__()
        if isinstance(embedder, Mirrored):
            raise ValueError("a system that learns every task anew sees no mirror images: leave out mirror")
        if isinstance(embedder, Headed):
            raise ValueError("a system that learns every task anew has a classifier on top of its network: leave out head")
        if way < 2:
            raise ValueError(f"way must be 2 or more, got {way}")
        self.network, self.head = embedder, nn.Linear(int(embedder.embedding_dim), way)  # type: ignore[arg-type]
        self.way = way
        prepare(embedder)

    def weights(self) -> dict[str, Tensor]:
        return dict(self.named_parameters())

    def of_norms(self) -> list[str]:
        """The names of the weights that belong to batch norm."""
        norms = [name for name, module in self.named_modules() if isinstance(module, nn.BatchNorm2d | TaskNorm)]
        return [name for name, _ in self.named_parameters() if name.rpartition(".")[0] in norms]

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
        prefix = "network."
        of_network = {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
        values, statistics = as_function(self.network, of_network, images, known, derived_twice=derived_twice)
        if values.shape[1] != weights["head.weight"].shape[1]:
            raise ValueError(
                f"this network was made for images of another size than {'x'.join(map(str, images.shape[-2:]))}"
            )
        logits = nn.functional.linear(values, weights["head.weight"][:way], weights["head.bias"][:way])
        return logits, statistics


class TaskLearner(nn.Module):
    """A network that learns every task anew, so it classifies and has no embeddings.

    numbers_a_weight   that it holds of each weight while it learns a task
    """

    def __init__(self, learner: Learner, numbers_a_weight: int) -> None:
        super().__init__()
        self.learner, self.most_ways = learner, learner.way
        self.numbers_an_episode = numbers_a_weight * sum(parameter.numel() for parameter in learner.parameters())

    @property
    def wrapped_network(self) -> nn.Module:
        return self.learner.network

    def forward(self, images: Tensor) -> Tensor:
        raise ValueError("this network learns every task anew and has no embeddings: ask its `answer`")

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        return self.answer_all(support_x[None], support_y, query_x[None])[0]

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        raise NotImplementedError
