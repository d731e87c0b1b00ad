"""A Triton kernel that does next to nothing, to find out whether there can be any."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _one(out):
    tl.store(out, 1.0)


def try_out(index: int) -> None:
    """On the CUDA device of this number."""
    with torch.cuda.device(index):
        _one[(1,)](torch.empty(1, device="cuda"))
