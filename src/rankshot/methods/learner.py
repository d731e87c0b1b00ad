"""A network with a classifier on top, as a function of its weights: what systems change that learn every task anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from rankshot.models.conv4_as_function import Statistics

MOST_STEPS = 1000  # that a task is learned in
Weights = Mapping[str, Tensor]


class Learner(nn.Module):
    """The weights that a task begins with. `way` is how many classes it can tell apart."""

    def __init__(self, embedder: nn.Module, way: int) -> None:
        super().__init__()
        if not hasattr(embedder, "as_function"):
            name = getattr(embedder, "description", {}).get("name", type(embedder).__name__)
            mirrored = ", together with mirror images," if "mirror" in getattr(embedder, "description", {}) else ""
            raise ValueError(
                f"a system that learns every task anew needs a network that is a function of its weights: {name}{mirrored} "
                "has no `as_function`, conv4 has"
            )
        if way < 2:
            raise ValueError(f"way must be 2 or more, got {way}")
        self.network, self.head = embedder, nn.Linear(int(embedder.embedding_dim), way)  # type: ignore[arg-type]
        self.way = way
        norms = [each for each in embedder.modules() if isinstance(each, nn.BatchNorm2d)]
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
        prefix = "network."
        of_network = {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
        network: Any = self.network
        values, found = network.as_function(of_network, images, known, derived_twice=derived_twice)
        if values.shape[1] != weights["head.weight"].shape[1]:
            raise ValueError(
                f"this network was made for images of another size than {'x'.join(map(str, images.shape[-2:]))}"
            )
        logits = nn.functional.linear(values, weights["head.weight"][:way], weights["head.bias"][:way])
        return logits, found


class TaskLearner(nn.Module):
    """A network that learns every task anew, so it classifies and has no embeddings.

    numbers_a_weight   that it holds of each weight while it learns a task
    """

    def __init__(self, learner: Learner, numbers_a_weight: int) -> None:
        super().__init__()
        self.learner, self.most_ways = learner, learner.way
        self.numbers_an_episode = numbers_a_weight * sum(each.numel() for each in learner.parameters())

    @property
    def wrapped(self) -> nn.Module:
        return self.learner.network

    def forward(self, images: Tensor) -> Tensor:
        raise ValueError("this network learns every task anew and has no embeddings: ask its `answer`")

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        return self.answer_all(support_x[None], support_y, query_x[None])[0]

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        raise NotImplementedError
