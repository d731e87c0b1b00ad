"""Where training stands, as named tensors that are alive: to save is to write them, to resume is to fill them in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn, optim

from .optimiser import state_tensors


class Average:
    """A running average of a network's weights and statistics, which forgets by `factor` an update.

    It starts from nothing, so after t updates it is `sums` divided by 1 - factor ** t, as Adam's averages are.
    """

    def __init__(self, model: nn.Module, factor: float) -> None:
        self.factor = factor
        self.state = model.state_dict()
        self.averaged = [name for name, tensor in self.state.items() if tensor.is_floating_point()]
        self.current = [self.state[name] for name in self.averaged]
        self.sums = [torch.zeros_like(tensor) for tensor in self.current]

    def update(self) -> None:
        torch._foreach_lerp_(self.sums, self.current, 1 - self.factor)

    def after(self, updates: int) -> dict[str, Tensor]:
        """As a state of the network."""
        share = 1 - self.factor**updates
        return {**self.state, **{name: tensor / share for name, tensor in zip(self.averaged, self.sums, strict=True)}}

    def tensors(self) -> dict[str, Tensor]:
        return {f"average.{name}": tensor for name, tensor in zip(self.averaged, self.sums, strict=True)}


def live_tensors(
    model: nn.Module, method: nn.Module, optimiser: optim.Optimizer, average: Average | None = None
) -> dict[str, Tensor]:
    """Everything that an update changes, by name."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"method.{name}": tensor for name, tensor in method.state_dict().items()}
    tensors |= average.tensors() if average else {}
    named = dict([*model.named_parameters(prefix="model"), *method.named_parameters(prefix="method")])
    return tensors | state_tensors(optimiser, named)


@contextmanager
def put_back(state: Mapping[str, Tensor]) -> Iterator[None]:
    """After this, every tensor is what it was before."""
    before = {name: tensor.clone() for name, tensor in state.items()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, tensor in state.items():
                tensor.copy_(before[name])
