"""The optimiser of a run: which weights follow the gradient, how fast, and how they shrink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn.modules.batchnorm import _BatchNorm

from rankshot.models.network import trunk_of

from .sections import OptimiserConfig

# Tensors that an optimiser keeps of each weight. They are there from the start: a checkpoint is filled in place.
KEPT = {"adam": ("step", "exp_avg", "exp_avg_sq"), "adamw": ("step", "exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}

STATISTICS = "statistics"  # takes the place of a layer's name
STEPS = 10  # of the rates of the layers of a network, where they differ

# Layers whose weights are of no channel alone; and norms, whose weights may have any shape.
MATRICES = (nn.Linear, nn.Bilinear, nn.Embedding, nn.modules.conv._ConvNd)
NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


def _layers_near(network: nn.Module, prefix: str) -> list[str]:
    """The layers beside the one that is not there, or all within the whole that it was meant to be a part of."""
    known = dict(network.named_modules())
    whole = prefix.rpartition(".")[0]
    while whole not in known:
        whole = whole.rpartition(".")[0]
    inside = [f"{whole}.{name}".lstrip(".") for name, _ in known[whole].named_children()]
    return [repr(name) for name in inside] or ["none"]


def freeze(network: nn.Module, prefixes: Sequence[str]) -> None:
    """Layers of the embedding network that do not learn: neither their weights nor their batch statistics.

    "all" is every layer. "statistics" is no layer: the weights of batch norm learn, and its running averages do not.
    """
    trunk = trunk_of(network)
    for prefix in prefixes:
        if not prefix:
            raise ValueError("frozen: a layer has a name, got an empty one")
        if prefix == STATISTICS:
            for module in trunk.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
            continue
        if prefix == "all":
            inside, weights = list(trunk.modules()), list(trunk.parameters())
        else:
            inside = [module for name, module in trunk.named_modules() if name == prefix or name.startswith(f"{prefix}.")]
            weights = [part for name, part in trunk.named_parameters() if name == prefix or name.startswith(f"{prefix}.")]
        if not inside and not weights:
            raise ValueError(
                f"frozen: the network has no layer {prefix!r}: there is {', '.join(_layers_near(trunk, prefix))}, "
                f"and 'all' and {STATISTICS!r}"
            )
        for weight in weights:
            weight.requires_grad_(False)
        for module in inside:
            module.eval()


@contextmanager
def flags_put_back(network: nn.Module | None) -> Iterator[None]:
    """What of a network that is given learns, and which mode it is in, are after this as they were before."""
    parameters = [] if network is None else [(parameter, parameter.requires_grad) for parameter in network.parameters()]
    modules = [] if network is None else [(module, module.training) for module in network.modules()]
    try:
        yield
    finally:
        for parameter, learns in parameters:
            parameter.requires_grad_(learns)
        for module, mode in modules:
            module.training = mode


def make_optimiser(
    config: OptimiserConfig, model: nn.Module, method: nn.Module, learning_rate: float, device: torch.device
) -> optim.Optimizer:
    """Over the network and what its method learns beside it, with its state there from the start."""
    groups = _groups(config, model, method)
    on_gpu = device.type == "cuda"
    for group in groups:  # in a CUDA graph a learning rate must be a tensor, or it would be recorded as the number it was
        rate = learning_rate * group["factor"]
        group["lr"] = torch.tensor(rate, device=device) if on_gpu else rate
    if not groups:
        has_weights = any(True for _ in model.parameters())
        all_frozen = "all weights are frozen, and there is no head that learns (--head 128)"
        why = all_frozen if has_weights else "the network has no weights"
        raise ValueError(f"there is nothing to learn: {why}")
    trunk = {id(weight) for weight in trunk_of(model).parameters()}
    learns = {id(weight) for group in groups for weight in group["params"]}
    if config.trunk_rate != 1 and learns <= trunk:
        raise ValueError("trunk_rate is for methods with layers of their own beside the network: set learning_rate instead")
    if config.first_layer_rate != 1 and not learns & trunk:
        raise ValueError("first_layer_rate is for a network that learns, and all of its layers are frozen: leave it out")
    optimiser: optim.Optimizer
    if config.name == "sgd":
        optimiser = optim.SGD(groups, momentum=config.momentum, nesterov=config.nesterov, fused=True)
    else:
        kind = optim.AdamW if config.name == "adamw" else optim.Adam
        optimiser = kind(groups, capturable=on_gpu, fused=True)
    for group in optimiser.param_groups:
        for weight in group["params"]:
            optimiser.state[weight] = _first_state(config, weight, device)
    return optimiser


def _first_state(config: OptimiserConfig, weight: Tensor, device: torch.device) -> dict[str, Any]:
    if config.name == "sgd" and not config.momentum:
        return {}
    zeros = {name: torch.zeros_like(weight) for name in KEPT[config.name]}
    return zeros | {"step": torch.zeros((), device=device)} if "step" in zeros else zeros


def _groups(config: OptimiserConfig, model: nn.Module, method: nn.Module) -> list[dict[str, Any]]:
    """Weights that go together: by how fast they learn, and whether they shrink."""
    of_trunk = _layer_rates(trunk_of(model), config.first_layer_rate)
    shrinks = {id(weight) for module in (model, method) for weight in _weights_that_shrink(module)}
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for weight in [*model.parameters(), *method.parameters()]:
        if weight.requires_grad:
            factor = config.trunk_rate * of_trunk[id(weight)] if id(weight) in of_trunk else 1.0
            decay = config.weight_decay if id(weight) in shrinks else 0.0
            groups.setdefault((factor, decay), []).append(weight)
    return [{"params": weights, "factor": factor, "weight_decay": decay} for (factor, decay), weights in groups.items()]


def _layer_rates(trunk: nn.Module, of_the_first: float) -> dict[int, float]:
    """By the id of each weight: from the first layer's rate to 1, the last one's, in ten steps at most, since an optimiser
    takes them one after another. Layers come in the order in which the network defines them."""
    layers = [list(module.parameters(recurse=False)) for module in trunk.modules()]
    layers = [weights for weights in layers if weights]
    rates: dict[int, float] = {}
    for depth, weights in enumerate(layers):
        step = round(depth * (STEPS - 1) / max(1, len(layers) - 1))
        for weight in weights:
            rates.setdefault(id(weight), of_the_first ** (1 - step / (STEPS - 1)))
    return rates


def _weights_that_shrink(network: nn.Module) -> Iterator[Tensor]:
    """All but norms, biases, and other weights that are one number a channel."""
    for module in network.modules():
        for name, weight in module.named_parameters(recurse=False):
            is_vector = weight.dim() < 2 or (weight.numel() == max(weight.shape) and not isinstance(module, MATRICES))
            if not (isinstance(module, NORMS) or "bias" in name or is_vector):
                yield weight


def set_learning_rate(optimiser: optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        own_rate = rate * group["factor"]
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(own_rate)
        else:
            group["lr"] = own_rate


def state_tensors(optimiser: optim.Optimizer, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What the optimiser keeps of each weight, by name."""
    kind = "sgd" if isinstance(optimiser, optim.SGD) else "adam"
    return {
        f"{kind}.{part}.{name}": tensor
        for name, weight in named.items()
        for part, tensor in optimiser.state.get(weight, {}).items()
    }
