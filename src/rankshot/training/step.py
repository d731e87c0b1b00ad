"""One update: which images in, loss and embeddings out. On a GPU it is recorded once as a CUDA graph and replayed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from rankshot.gathering import any_of, average_, is_shared
from rankshot.methods import LossMethod, Method

from .batch import Batch
from .inputs import Inputs
from .micro_batches import backward_in_micro_batches, statistics_of
from .optimiser import set_learning_rate
from .state import Average, put_back

WARM_UP = 3  # eager updates before a graph is recorded: libraries choose their kernels, the allocator fills


@contextmanager
def repeatable() -> Iterator[None]:
    """Convolutions that sum in one order while this lasts: on a GPU too, the same batch gives the same gradient.

    torch's own random numbers, which a network may draw for its dropout, are after it as they were before.
    """
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        with torch.random.fork_rng([torch.cuda.current_device()] if on_gpu else []):
            yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before


class Step:
    """The network, how it learns and its optimiser.

    Of several processes each embeds its part of the batch; the gradient is that of the whole, on every process.

    model   what learns: the network, or of a frozen one its head
    inputs  what it sees of a batch
    labels  (n,)
    """

    def __init__(
        self,
        model: nn.Module,
        method: Method,
        optimiser: torch.optim.Optimizer,
        inputs: Inputs,
        labels: Tensor,
        average: Average | None = None,
        clip: float | None = None,
        micro_batch: int = 0,
    ) -> None:
        self.model, self.method, self.optimiser = model, method, optimiser
        self.inputs, self.labels = inputs, labels
        self.average, self.clip, self.micro_batch = average, clip, micro_batch

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The loss (), and the embeddings (B, D) if there are any; of several processes perhaps those of this one."""
        self.optimiser.zero_grad()
        loss, embeddings = self._backward(self.inputs(batch), batch.indices)
        if is_shared():
            self._average_over_processes()
        if self.clip is not None:
            nn.utils.clip_grad_norm_([*self.model.parameters(), *self.method.parameters()], self.clip)
        self.optimiser.step()
        if self.average is not None:
            self.average.update()
        return loss.detach(), None if embeddings is None else embeddings.detach()

    def _average_over_processes(self) -> None:
        """The gradients; and where micro-batches were normalised by themselves, what batch norm has learned of them."""
        learned = [*self.model.parameters(), *self.method.parameters()]
        # A network that leaves out layers at random has other gradients in every process.
        for weight, has_one in zip(learned, any_of(*(weight.grad is not None for weight in learned)), strict=True):
            if has_one and weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        average_([weight.grad for weight in learned if weight.grad is not None])
        if self.micro_batch:
            average_([values for values in statistics_of(self.model, learning=True).values() if values.is_floating_point()])

    def _backward(self, inputs: Tensor, indices: Tensor) -> tuple[Tensor, Tensor | None]:
        labels = self.labels[indices]
        self.method.ids = indices
        if self.micro_batch and isinstance(self.method, LossMethod):
            method = self.method
            network = Embedding(method, self.model)
            return backward_in_micro_batches(
                network, inputs, lambda embedded: method.loss_of(embedded, labels), min(self.micro_batch, len(inputs))
            )
        loss, embeddings = self.method.learn(self.model, inputs, labels)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss, embeddings


class Embedding(nn.Module):
    """A network as a method calls it, in the precision of the run."""

    def __init__(self, method: Method, model: nn.Module) -> None:
        super().__init__()
        self.method, self.model = method, model

    def forward(self, images: Tensor) -> Tensor:
        return self.method.embed_part(self.model, images)


def seconds_an_update(step: Step | GraphedStep, state: Mapping[str, Tensor], batch: Batch) -> float:
    """By trying, after one that warms up; nothing is learned from it."""
    optimiser = step.optimiser
    with put_back(state):
        set_learning_rate(optimiser, 0.0)
        for _ in range(2):
            start = time.perf_counter()
            value, _ = step(batch)
            value.item()  # waits for it
        return time.perf_counter() - start


class GraphedStep:
    """A `Step` as a CUDA graph: one launch an update instead of hundreds, the same arithmetic.

    `state` is every tensor that an update changes: warming up changes them too, so they are put back.
    """

    def __init__(self, step: Step, state: Mapping[str, Tensor], batch: Batch) -> None:
        self.batch = Batch(*(None if each is None else each.clone() for each in batch))  # type: ignore[arg-type]
        self.step, self.optimiser = step, step.optimiser  # the graph reads what a step holds
        with put_back(state):
            set_learning_rate(step.optimiser, 0.0)  # to warm up is not to learn, and must not break down
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):
                    step(self.batch)
            torch.cuda.current_stream().wait_stream(stream)
            step.optimiser.zero_grad()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loss, self.embeddings = step(self.batch)

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        for kept, given in zip(self.batch, batch, strict=True):
            if kept is not None and given is not None:
                kept.copy_(given)
        self.graph.replay()
        return self.loss, self.embeddings
