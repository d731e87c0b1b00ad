"""Operations on several tasks at once, and what `torch.func.vmap` makes of them: one operation on more tasks.

A tensor of T tasks begins with T. In memory the channels of a pixel lie beside one another, (T, B, H, W, C), though it is
seen as (T, B, C, H, W): kernels take strides, so nothing is rearranged.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class TaskFunction(Function):
    """Every tensor that it takes or gives begins with the tasks."""

    @classmethod
    def run(cls, *inputs: Any) -> Any:
        return cls.apply(*inputs)  # type: ignore[no-untyped-call]

    @classmethod
    def vmap(cls, info: Any, dimensions: Any, *inputs: Any) -> Any:
        """The tasks of all that `vmap` runs over, in one row."""
        count = info.batch_size

        def together(each: Any, dimension: int | None) -> Any:
            if not isinstance(each, Tensor):
                return each
            each = each.expand(count, *each.shape) if dimension is None else each.movedim(dimension, 0)
            return each.flatten(0, 1)

        outputs = cls.run(*map(together, inputs, dimensions))
        if isinstance(outputs, Tensor):
            return outputs.unflatten(0, (count, -1)), 0  # type: ignore[no-untyped-call]
        return tuple(each.unflatten(0, (count, -1)) for each in outputs), (0,) * len(outputs)


def of_one(tensor: Tensor) -> Tensor:
    """What belongs to one task, as a row of one task."""
    return tensor.unsqueeze(0)
