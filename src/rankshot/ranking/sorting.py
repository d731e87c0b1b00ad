"""Sorting rows of scores, best first: most of the time of a ranking on a CPU goes here.

torch sorts values and indices side by side, one comparison at a time. NumPy sorts plain integers with the processor's
vector instructions, several times as fast (`make bench` says how much). So where NumPy is at hand, a float32 score and its
column are packed into one 64-bit integer, which also makes the order stable. NumPy is never needed: without it, in
float64 and on other devices, torch sorts, and the order is the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    torch.zeros(1, device="cpu").numpy()
    HAS_NUMPY = True
except RuntimeError:  # "Numpy is not available"
    HAS_NUMPY = False
PACK_FROM = 64  # columns; shorter rows are not worth the packing


def sort_rows(scores: Tensor) -> tuple[Tensor, Tensor]:
    """(Q, G) -> values (Q, G), columns (Q, G) int64: every row best first; equal scores keep their order.

    >>> sort_rows(torch.tensor([[0.1, 0.9, 0.1]]))
    (tensor([[0.9000, 0.1000, 0.1000]]), tensor([[1, 0, 2]]))
    """
    on_cpu = scores.device.type == "cpu"
    if HAS_NUMPY and on_cpu and scores.dtype == torch.float32 and scores.shape[1] >= PACK_FROM:
        return _sort_packed(scores)
    values, columns = scores.sort(dim=-1, descending=True, stable=True)
    return values, columns


def _sort_packed(scores: Tensor) -> tuple[Tensor, Tensor]:
    bits = (0.0 - scores).view(torch.int32)  # best first is smallest first; and there is no -0.0 any more
    ordered = (bits >> 31).bitwise_and_(0x7FFFFFFF).bitwise_xor_(bits)  # integers in the order of the floats
    packed = ordered.long().bitwise_left_shift_(32).bitwise_or_(torch.arange(scores.shape[1], device="cpu"))
    packed.numpy().sort(axis=-1)
    columns = packed.bitwise_and_(0xFFFFFFFF)
    return scores.gather(-1, columns), columns
