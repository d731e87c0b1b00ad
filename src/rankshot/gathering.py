"""Several processes that work on one batch, as one: what each has is gathered, with the gradient of a single process.

In a single process, and where `torch.distributed` is not set up, all of this does nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed

LEAST = 2  # processes; 1 is for trying out what several do


class ProcessLost(ConnectionError):
    """Another process has ended, or cannot be reached."""


class ToldByFirst(ValueError):
    """An error of all processes, or of another one, that the first of them tells."""


def is_shared(group: Any = None) -> bool:
    """Whether there are other processes to gather from."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size(group) >= LEAST


def is_first() -> bool:
    """Whether this is the process that writes files and speaks."""
    return rank() == 0


def rank() -> int:
    """Which of the processes this is."""
    return distributed.get_rank() if is_shared() else 0


def world_size() -> int:
    """How many there are."""
    return distributed.get_world_size() if is_shared() else 1


def part_of(batch: Tensor) -> Tensor:
    """This process's part of a batch that all of them know: the first gets the first images, and so on."""
    return batch.tensor_split(world_size())[rank()] if is_shared() else batch


def whole_of(part: Tensor, size: int) -> Tensor:
    """The batch of `size` that `part_of` has divided, on every process. Gradients are summed over all processes."""
    if not is_shared():
        return part
    return gathered(part, [len(each) for each in torch.arange(size).tensor_split(world_size())])


def gathered(values: Tensor, sizes: list[int], group: Any = None) -> Tensor:
    """(n, …) of every process, one after another; `sizes` is n of each. The gradient is the sum over all processes."""
    if values.device.type == "cpu" and _where_to_talk(group).type == "cuda":
        return gathered(values.cuda(), sizes, group).cpu()
    result: Tensor = _Gather.apply(values, sizes, group)  # type: ignore[no-untyped-call]
    return result


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, sizes: list[int], group: Any) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        padded = values.new_zeros(max(sizes), *values.shape[1:])  # parts of one size, as all backends gather
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in sizes]
        with hearing_of_losses():
            distributed.all_gather(parts, padded, group=group)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """What all processes want of this one's part."""
        gradient = gradient.contiguous().clone()
        with hearing_of_losses():
            distributed.all_reduce(gradient, group=ctx.group)
        here = distributed.get_rank(ctx.group)
        start = sum(ctx.sizes[:here])
        return gradient[start : start + ctx.sizes[here]], None, None


@torch.no_grad()
def average_(tensors: Sequence[Tensor]) -> None:
    """Every tensor becomes its mean over all processes."""
    if not is_shared() or not tensors:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    with hearing_of_losses():
        distributed.all_reduce(flat)
    flat /= world_size()
    for tensor, mean in zip(tensors, torch.split(flat, [tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(mean.view_as(tensor))


@torch.no_grad()
def copy_from_first_(tensors: Sequence[Tensor]) -> None:
    """Every tensor becomes that of the first process."""
    for tensor in tensors if is_shared() else ():
        here = tensor.detach().contiguous()
        with hearing_of_losses():
            distributed.broadcast(here, 0)
        tensor.copy_(here)


def any_of(*flags: bool) -> list[bool]:
    """Each flag: whether any process has it."""
    if not is_shared():
        return list(flags)
    numbers = torch.tensor(flags, dtype=torch.int32, device=_where_to_talk())
    with hearing_of_losses():
        distributed.all_reduce(numbers, distributed.ReduceOp.MAX)
    return [bool(number) for number in numbers.tolist()]


def told_by_all(message: Any) -> list[Any]:
    """What JSON can hold, of every process, in their order."""
    if not is_shared():
        return [message]
    content = torch.frombuffer(bytearray(json.dumps(message).encode()), dtype=torch.uint8).to(_where_to_talk())
    size = torch.tensor([len(content)], device=content.device)
    with hearing_of_losses():
        sizes = [torch.empty_like(size) for _ in range(world_size())]
        distributed.all_gather(sizes, size)
    everything = gathered(content, [int(each) for each in sizes]).cpu()
    parts = torch.split(everything, [int(each) for each in sizes])
    return [json.loads(bytes(part.tolist())) for part in parts]


def told_by_first(message: Any) -> Any:
    """What JSON can hold, of the first process."""
    return told_by_all(message if is_first() else None)[0]


def check_same(here: Mapping[str, Any]) -> None:
    """What all processes must have been given alike, by name; where it differs, all of them fail, and the first tells."""
    first, *others = told_by_all(json.loads(json.dumps(here, default=str)))
    with failing_together():
        for who, theirs in enumerate(others, start=1):
            for name in {**first, **theirs}:
                if first.get(name) != theirs.get(name):
                    raise ValueError(
                        f"processes must be given the same: {name} is {first.get(name)!r} in process 0 and "
                        f"{theirs.get(name)!r} in process {who}"
                    )


@contextmanager
def failing_together() -> Iterator[None]:
    """What fails in one process fails in all, so that nobody waits for who has gone. The first process tells why.

    Nothing may be gathered within.
    """
    error: BaseException | None = None
    try:
        yield
    except (Exception, SystemExit) as raised:
        has_helped = isinstance(raised, SystemExit) and not raised.code  # all have been asked for help
        if not is_shared() or has_helped:
            raise
        error = raised
    why = "its options cannot be read" if isinstance(error, SystemExit) else str(error) or type(error).__name__
    failures = told_by_all(None if error is None else why)
    if all(failure is None for failure in failures):
        return
    if not is_first():
        raise ToldByFirst(f"see process 0: {next(filter(None, failures))}") from error
    if error is not None:
        raise error
    who, failure = next((who, failure) for who, failure in enumerate(failures) if failure is not None)
    raise ValueError(f"process {who}: {failure}")


def _where_to_talk(group: Any = None) -> torch.device:
    """Small messages go from CPU to CPU where that is possible: a GPU would have to finish its work first."""
    on_cpu = "gloo" in str(distributed.get_backend_config(group))
    return torch.device("cpu") if on_cpu else torch.device("cuda", torch.cuda.current_device())


@contextmanager
def hearing_of_losses() -> Iterator[None]:
    """Around what torch.distributed does: its errors mean that a process is lost."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        who = f"process {distributed.get_rank()} of {distributed.get_world_size()}"
        why = str(error).strip().splitlines()[:1]
        raise ProcessLost(
            f"{who} cannot go on: another one has ended, or cannot be reached ({''.join(why)[:200]})"
        ) from error
