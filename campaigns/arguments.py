"""Arguments for calls of the library: of any shape, type and size, and mostly nearly right."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from .mutations import NUMBERS

Try = tuple[str, Callable[[], object]]  # a call in words, and the call
METRICS: tuple[Any, ...] = (
    *"ap ndcg auc rr precision@1 precision@3 precision@0 precision@x AP".split(), "", None, 7, "precision@" + "9" * 30,
)  # fmt: skip
DTYPES = tuple(getattr(torch, name) for name in "float32 float64 float16 bfloat16 int64 bool uint8 complex64".split())
PLACES = (
    *"run classifier gallery missing . pictures run/config.json conv4-omniglot /dev/zero".split(), "", "a\x00b", "x" * 5000,
)  # fmt: skip


def number(chance: random.Random) -> Any:
    return chance.choice((*NUMBERS, True, None, "1", [1], np.float32(0.5), np.int64(3), 1j))


def small(chance: random.Random) -> Any:
    """Now and then something that a number should be and is not."""
    return chance.choice((1, 2, 3, 5)) if chance.random() < 0.6 else number(chance)


def tensor(chance: random.Random, *sides: int) -> Any:
    """Mostly of this shape and full of good numbers."""
    how = chance.random()
    shape = sides if how < 0.75 else tuple(chance.choice((0, 1, 2, 7)) for _ in range(chance.randrange(5)))
    dtype = torch.float32 if chance.random() < 0.7 else chance.choice(DTYPES)
    made = (torch.randn(shape) * chance.choice((1, 1, 1, 0, 1e-30, 1e30))).to(dtype)
    if made.is_floating_point() and made.numel() and chance.random() < 0.15:
        made.view(-1)[chance.randrange(made.numel())] = chance.choice((torch.nan, torch.inf, -torch.inf, 3e38))
    if how > 0.97:
        return chance.choice(
            (None, "x", made.numpy() if dtype != torch.bfloat16 else None, made.tolist(), 3, made.to_sparse())
        )
    return made


def labels(chance: random.Random, count: int) -> Any:
    how = chance.random()
    made = torch.tensor([chance.randrange(max(1, chance.choice((1, 2, 3, count)))) for _ in range(count)])
    if how < 0.7:
        return made
    return chance.choice(
        (
            made.float(),
            made.int(),
            -made,
            made + 2**62,
            made[:-1],
            made[None],
            made.tolist(),
            made.bool(),
            torch.full((count,), torch.nan),
            None,
        )
    )


def described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"tensor({tuple(value.shape)}, {value.dtype})"
    return f"array({value.shape}, {value.dtype})" if isinstance(value, np.ndarray) else repr(value)[:200]


def image(chance: random.Random) -> Any:
    made = np.random.default_rng(chance.randrange(99)).random((16, 16, 3))
    choices: tuple[Any, ...] = (
        "pictures/c1/0.png", Path("pictures/c1/1.png"), made, (made * 255).astype(np.uint8), made[..., 0],
        made.transpose(2, 0, 1), made.astype(np.float16),
        made * 300, np.full((3, 3, 3), np.nan), np.zeros((0, 3, 3)), np.zeros((16, 16, 16, 16)), "missing.png", "",
        b"bytes", None, 7, Image.new("F", (4, 4)),
        Image.new("RGBA", (1, 1)), torch.rand(3, 16, 16), torch.rand(1, 2, 3, 4), [1.0, 2.0], "/dev/zero", "pictures",
        np.array(["x"]), made > 0.5,
        np.zeros((2, 2), np.int64), Image.new("I", (3, 3), 70000), {}, made + 0j, np.zeros((16, 16, 3), object),
    )  # fmt: skip
    return chance.choice(choices) if chance.random() < 0.6 else "pictures/c1/0.png"


def named(function: Any, *arguments: Any, **named: Any) -> Try:
    name = getattr(function, "__qualname__", str(function))
    shown = ", ".join([*map(described, arguments), *(f"{key}={described(value)}" for key, value in named.items())])
    return f"{name}({shown})", lambda: function(*arguments, **named)
