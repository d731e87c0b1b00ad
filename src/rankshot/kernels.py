"""Whether Triton's kernels can be used here: they are faster ways to what plain torch does everywhere."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec

import torch


def kernels_work(device: torch.device) -> bool:
    """On a CUDA device that is new enough, with Triton, and with the compiler that it needs."""
    return device.type == "cuda" and _tried(device.index if device.index is not None else torch.cuda.current_device())


def are_memory(*tensors: torch.Tensor) -> bool:
    """Whether a kernel can read the tensors: not so where torch.func, torch.export or torch.jit.trace pass stand-ins.

    torch.compile takes kernels as they are.
    """
    if torch.compiler.is_dynamo_compiling():
        return True
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return all(type(tensor) in (torch.Tensor, torch.nn.Parameter) and not wrapped(tensor) for tensor in tensors)


def check_single_precision(tensor: torch.Tensor) -> None:
    """Kernels read memory as what it is told to be."""
    if tensor.dtype != torch.float32:
        raise TypeError(f"these kernels compute in float32, got {tensor.dtype}")


@cache
def _tried(index: int) -> bool:
    if find_spec("triton") is None or torch.version.hip or torch.cuda.get_device_capability(index) < (7, 0):
        return False
    try:
        from rankshot.kernel_probe import try_out

        # The first call may come from within vmap or grad, where a tensor that is made has no memory that a kernel could
        # write to: a thread of its own knows nothing of these.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(try_out, index).result()
    except Exception as error:  # whatever it is, there is another way
        warnings.warn(f"Triton is there but does not work, so training is slower: {error}", stacklevel=2)
        return False
    return True


def on(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, wherever its arguments are."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
