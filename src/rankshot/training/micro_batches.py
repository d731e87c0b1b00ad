"""A batch that does not fit in memory: embedded part by part, ranked as a whole.

The loss needs all embeddings at once, but only a gradient by each of them goes back into the network. So the batch is
embedded without a graph first, the loss gives the gradient by the embeddings, and then every part is embedded once more,
with a graph, and goes back by its own share. The gradient is that of the whole batch, for a second forward pass.

Batch norm sees one micro-batch at a time: where its statistics are frozen, all is as with the whole batch; else each
micro-batch is normalised by its own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rankshot.limits import whole

from .state import put_back

MOST_IMAGES = 2**24


def backward_in_micro_batches(
    network: Callable[[Tensor], Tensor],
    images: Tensor,
    loss: Callable[[Tensor], Tensor],
    micro_batch: int,
) -> tuple[Tensor, Tensor]:
    """As `loss(network(images)).backward()`; returns the value of the loss and the embeddings, both detached.

    Dropout, and whatever else a network draws, is the same in both passes. Running averages of batch norm take in every
    micro-batch once.

    Args:
        network: images (B, …) -> embeddings (B, D). Its weights get gradients, added to those that are there.
        images: the whole batch, where the network is.
        loss: embeddings (B, D) -> scalar, such as `lambda embeddings: loss(embeddings, labels)`. Its own weights get their
            gradient too.
        micro_batch: how many images at a time.

    >>> network, images = nn.Linear(3, 2), torch.rand(6, 3)
    >>> value, embeddings = backward_in_micro_batches(network, images, lambda embeddings: embeddings.square().sum(), 2)
    >>> network.weight.grad.shape, embeddings.shape
    (torch.Size([2, 3]), torch.Size([6, 2]))
    """
    if not isinstance(images, Tensor) or not len(images):
        raise ValueError(f"images must be a tensor of one at least, got {_told(images)}")
    if not callable(network) or not callable(loss):
        raise TypeError(f"network and loss must be functions, got {_told(network)} and {_told(loss)}")
    whole("micro_batch", micro_batch, 1, MOST_IMAGES)
    if micro_batch > len(images):
        raise ValueError(f"micro_batch must be no more than the {len(images)} images of the batch, got {micro_batch}")
    parts = torch.split(images, micro_batch)
    states, embedded = [], []
    with torch.no_grad(), put_back(statistics_of(network)):
        for part in parts:
            states.append(_random_state(images.device))
            embedded.append(network(part))
    embeddings = torch.cat(embedded).requires_grad_()
    del embedded
    value = loss(embeddings)
    if not isinstance(value, Tensor) or value.shape or not value.requires_grad:
        raise ValueError(f"the loss must be one number that depends on the embeddings, a tensor (), got {_told(value)}")
    value.backward()  # type: ignore[no-untyped-call]
    if embeddings.grad is None:
        raise ValueError("the loss does not depend on the embeddings")
    after = _random_state(images.device)
    for part, state, gradient in zip(parts, states, torch.split(embeddings.grad, micro_batch), strict=True):
        _set_random_state(state, images.device)
        network(part).backward(gradient)  # type: ignore[no-untyped-call]
    _set_random_state(after, images.device)
    return value.detach(), embeddings.detach()


def _told(given: object) -> str:
    return f"a tensor {tuple(given.shape)}" if isinstance(given, Tensor) else type(given).__name__


def statistics_of(network: object, *, learning: bool = False) -> dict[str, Tensor]:
    """The running averages of all batch norm within; with `learning` of those alone that follow the batches."""
    layers = network.named_modules() if isinstance(network, nn.Module) else ()
    norms = ((name, layer) for name, layer in layers if isinstance(layer, _BatchNorm) and (layer.training or not learning))
    return {f"{name}.{kind}": buffer for name, norm in norms for kind, buffer in norm.named_buffers(recurse=False)}


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)
