"""What torch.compile makes faster of a run: the network, or the turn of a loop that a method has of its own."""

from __future__ import annotations

import torch
from torch import nn

from rankshot.gathering import world_size
from rankshot.methods import Method
from rankshot.methods.method import has_loop
from rankshot.models.network import NETWORKS

from .config import TrainConfig


def check_can_be_compiled(config: TrainConfig, method: Method) -> None:
    if not config.run.compiled:
        return
    if world_size() > 1:
        raise ValueError("compile is for a single process: batch norm over several waits for the others within the network")
    if has_loop(method):  # which becomes faster, whatever the network is
        return
    if _has_own_kernels(config):
        gains = "has fast kernels of its own, and torch.compile gains nothing there"
        raise ValueError(f"{config.network.architecture.name} {gains}: leave out --compile")
    if not method.in_parts:
        raise ValueError(f"{config.method.name} does not learn from embeddings alone, and cannot be compiled")


def compile_parts(config: TrainConfig, model: nn.Module, method: Method) -> None:
    """Where `check_can_be_compiled` has found that something gains by it."""
    if method.in_parts and not _has_own_kernels(config):  # others compute the network as a function of other weights
        method.compiled = torch.compile(lambda images: model(images))
    if (turn := method.turn_of(model)) is not None:
        method.compiled_turn = torch.compile(turn, dynamic=False)


def _has_own_kernels(config: TrainConfig) -> bool:
    network = config.network.architecture
    return not network.is_object and bool(NETWORKS[network.name].about.get("own_kernels"))
