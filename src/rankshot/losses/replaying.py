"""A loss of small batches on a GPU, recorded as a CUDA graph and replayed.

Such a call is hundreds of microseconds of launches for some tens of work. So when batches of one size come again and again,
as in training, value and gradient are recorded once and replayed with the numbers of each batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MOST_IMAGES = 512  # of a batch; larger ones keep the GPU busy by themselves
CALLS_BEFORE = 3  # of a size: kernels are compiled by then, and it is known to come again
MOST_SIZES = 4  # that are kept of one loss
# embeddings (B, D), labels (B,) -> the loss (), and (k,) what is to be looked at after a call
Compute = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def refuse_second_derivative() -> None:
    """With create_graph the gradient would count as a constant, and a second derivative come out wrong."""
    if torch.is_grad_enabled():
        raise RuntimeError("RankingLoss cannot be differentiated twice: call backward without create_graph")


class Recording:
    """Value and gradient of one size of batch. What comes in is copied to where the graph reads, what comes out, away."""

    def __init__(self, compute: Compute, embeddings: Tensor, labels: Tensor) -> None:
        self.embeddings, self.labels = embeddings.detach().clone().requires_grad_(), labels.clone()
        self.graph, self.turn = torch.cuda.CUDAGraph(), threading.Lock()
        stream = torch.cuda.Stream(embeddings.device)  # type: ignore[no-untyped-call]  # torch's own is of one device for ever
        # Other threads, such as those that load images, may go on using the GPU meanwhile.
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"), torch.enable_grad():
            value, self.seen = compute(self.embeddings, self.labels)
            (self.gradient,) = torch.autograd.grad(value, self.embeddings)
            self.value = value.detach()

    @torch.no_grad()
    def replay(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, list[Any]]:
        """The loss, its gradient by the embeddings, and what is to be looked at."""
        with self.turn:
            self.embeddings.copy_(embeddings)
            self.labels.copy_(labels)
            with torch.cuda.device(self.labels.device):
                self.graph.replay()
            return self.value.clone(), self.gradient.clone(), self.seen.tolist()


class Recordings:
    """Those of one loss, by the size of the batch. A copy of the loss begins with none."""

    def __init__(self) -> None:
        self._calls: dict[Any, int] = {}
        self._kept: dict[Any, Recording | None] = {}

    def __deepcopy__(self, memo: Any) -> Recordings:
        return Recordings()

    def __reduce__(self) -> Any:
        return Recordings, ()

    def get(self, compute: Compute, embeddings: Tensor, labels: Tensor) -> Recording | None:
        """The recording for such a batch; None: it is to be computed as usual."""
        if len(embeddings) > MOST_IMAGES or not embeddings.requires_grad or not torch.is_grad_enabled():
            return None
        with torch.cuda.device(embeddings.device):
            return None if torch.cuda.is_current_stream_capturing() else self._get(compute, embeddings, labels)

    def _get(self, compute: Compute, embeddings: Tensor, labels: Tensor) -> Recording | None:
        stream = torch.cuda.current_stream(embeddings.device).cuda_stream
        key = (embeddings.shape, embeddings.dtype, embeddings.device, stream)
        if key in self._kept:
            return self._kept[key]
        self._calls[key] = self._calls.get(key, 0) + 1
        if self._calls[key] <= CALLS_BEFORE or len(self._kept) >= MOST_SIZES:
            return None
        try:
            self._kept[key] = Recording(compute, embeddings, labels)
        except RuntimeError:  # something in it cannot be recorded, in this version of torch or with these settings
            self._kept[key] = None
        return self._kept[key]


class Replayed(torch.autograd.Function):
    """The value, whose gradient is there already."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        refuse_second_derivative()
        (gradient,) = ctx.saved_tensors
        return grad * gradient, None, None
