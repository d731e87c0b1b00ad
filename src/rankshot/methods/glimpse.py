"""A glimpse: what a small window that can be moved and zoomed sees of an image, as in Attentive Recurrent Comparators."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NOT_ZERO = 1e-4  # beside the sum of a filter, which vanishes where the window has left the image


def filters(centre: Tensor, zoom: Tensor, length: int, window: int) -> Tensor:
    """A bank of Cauchy filters along one side of the images: (B,) and (B,) -> (B, window, length), each of about sum 1.

    centre   of the window: -1 and 1 are the two ends of the side
    zoom     0: the filters are spread over the whole side, and wide; 1: all of them are at the centre, and narrow

    >>> filters(torch.zeros(1), torch.zeros(1), 4, 2)[0]
    tensor([[0.2982, 0.2982, 0.2363, 0.1670],
            [0.1670, 0.2363, 0.2982, 0.2982]])
    """
    near = zoom.abs()[:, None]
    numbers = torch.arange(window, dtype=centre.dtype, device=centre.device) - (window - 1) / 2
    places = (length - 1) * (centre[:, None] + 1) / 2 + length / window * (1 - near) * numbers
    width = (1 - 2 * near[..., None]).exp()
    pixels = torch.arange(length, dtype=centre.dtype, device=centre.device)
    density = width / (math.pi * (width.square() + (pixels - places[..., None]).square()))
    return density / (density.sum(-1, keepdim=True) + NOT_ZERO)


def glimpse(images: Tensor, where: Tensor, window: int) -> Tensor:
    """Images (B, H, W, C), and (B, 3): a centre down, a centre across, a zoom -> (B, window * window * C).

    Channels come last, so that all of them are filtered by one product of matrices, and not each by one of its own.
    """
    down, across, zoom = where.unbind(-1)
    height, width = images.shape[1:3]
    rows = filters(down, zoom, height, window) @ images.flatten(2)
    return (filters(across, zoom, width, window)[:, None] @ rows.view(len(rows), window, width, -1)).flatten(1)
