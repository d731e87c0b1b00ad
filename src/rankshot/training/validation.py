"""Which tasks tell how good a network is while it learns, and which network is the best."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn

from rankshot import data, fewshot
from rankshot.gathering import is_shared
from rankshot.methods import Method
from rankshot.vectors import computable

from .config import TrainConfig

WAYS = (5, 20)  # where the config leaves it open


def validation_tasks(
    config: TrainConfig, images: data.ImageSet | None, model: object = None, shot: int | None = None
) -> list[fewshot.Task]:
    """Classification and retrieval of every way, as far as the model can answer; also by the shots that it learns with."""
    if images is None:
        return []
    if len(images.classes) < 2:
        raise ValueError(
            f"{config.data.name} has a single validation class: to train without validation, set validate_every to 0"
        )
    most = min(len(images.classes), getattr(model, "most_ways", len(images.classes)))
    ways = config.validation.ways or {min(way, most) for way in WAYS}
    learned = (
        {shot} if shot is not None and shot < min(fewshot.Classification.per_class, images.smallest_class) else set[int]()
    )
    tasks = fewshot.tasks_for(images, ways, sorted({*config.validation.shots, *learned}))
    if not any(fewshot.can_answer(model, task) for task in tasks):
        raise ValueError(f"validation_ways {ways}: this network was made for tasks of up to {most} classes")
    return [task for task in tasks if fewshot.can_answer(model, task)]


class InPrecision(nn.Module):
    """A network that computes as in training, in bfloat16 perhaps; what is made of its embeddings does not."""

    def __init__(self, network: nn.Module, precision: torch.dtype) -> None:
        super().__init__()
        self.network, self.precision = network, precision

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, D)."""
        is_meta = images.device.type == "meta"  # whose sizes are looked at and whose numbers are not: it has no autocast
        with nullcontext() if is_meta else torch.autocast(images.device.type, self.precision):
            embeddings: Tensor = self.network(images)
        return computable(embeddings)


class Validator:
    """Measures a network on the held-out classes. Without such classes it has no tasks."""

    def __init__(
        self, config: TrainConfig, model: nn.Module, method: Method, images: data.ImageSet | None, pixels: Tensor | None
    ) -> None:
        self.config, self.model, self.images, self.pixels = config, model, images, pixels
        self.tasks = validation_tasks(config, images, model, getattr(method, "shot", None))
        self.decisive = method.decisive(self.tasks)
        self.measured = model
        if method.precision != torch.float32 and not isinstance(model, fewshot.Answerer | fewshot.HasRule):
            self.measured = InPrecision(model, method.precision)

    def measure(self, weights: dict[str, Tensor] | None = None) -> tuple[list[fewshot.Result], float]:
        """Results by task, and the one number that says which network is best; by other weights than the model's own."""
        assert self.images is not None
        how = self.config.validation
        with nullcontext() if weights is None else loaded_with(self.model, weights):
            results = fewshot.evaluate(
                self.measured,
                self.images,
                self.tasks,
                how.episodes,
                self.config.run.seed,
                how.batch_norm,
                self.pixels,
                together=is_shared(),
            )
        return results, results[self.decisive].mean


@contextmanager
def loaded_with(model: nn.Module, state: dict[str, Tensor]) -> Iterator[None]:
    """The model with other weights, for a while; its tensors stay where they are."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    try:
        yield
    finally:
        model.load_state_dict(before)
