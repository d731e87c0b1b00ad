"""What the learning part of a network sees of a batch: pictures, or what a frozen network has made of them once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from rankshot.data.augmentation import augmented, random_numbers
from rankshot.gathering import part_of
from rankshot.models.largest_layer import images_at_once, largest_layer

from .batch import Batch
from .estimate import in_words

VIEWS = 4  # of an image, where it is augmented: as it is, and changed in three ways
MOST_BYTES = 2**32


class Inputs(Protocol):
    """What goes into the learning part of a network, for a batch. Of several processes each has its part."""

    def __call__(self, batch: Batch) -> Tensor: ...


class Pictures:
    """Float images from 0 to 1, changed at random.

    images  (n, C, H, W) uint8, where the network is; None: every batch brings its own
    """

    def __init__(self, images: Tensor | None, augment: Sequence[str] = ()) -> None:
        self.images, self.augment = images, augment

    def __call__(self, batch: Batch) -> Tensor:
        images = batch.images
        if images is None:
            assert self.images is not None
            images = self.images[part_of(batch.indices)]
        return augmented(images.float() / 255, self.augment, part_of(batch.noise))


class EmbeddedOnce:
    """Embeddings by a network that does not change, of a few views of every image; a batch has one of each.

    A head learns from these in seconds, where the network would take minutes.

    views  (n, V, D)
    """

    def __init__(self, views: Tensor) -> None:
        self.views = views

    def __call__(self, batch: Batch) -> Tensor:
        which = (part_of(batch.noise)[:, 0] * self.views.shape[1]).long()
        return self.views[part_of(batch.indices), which]


def can_be_embedded_once(images: int, dimensions: int, augment: Sequence[str]) -> bool:
    """Whether the views of so many images are not too large, and a view is a matter of its image alone.

    The same in all processes and whenever a run goes on, whatever memory is free.
    """
    return 4 * images * dimensions * views_of(augment) <= MOST_BYTES and "turn" not in augment  # which turns whole classes


def views_of(augment: Sequence[str]) -> int:
    return VIEWS if augment else 1


@torch.no_grad()
def embedded_once(
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    augment: Sequence[str],
    seed: int,
    precision: torch.dtype,
    tell: Callable[[str], None],
) -> EmbeddedOnce:
    """All images (n, C, H, W) uint8 through a frozen network, in as many views as augmentation wants.

    How long that takes is told after the first of them. The network and the labels (n,) are on the training device.
    """
    device, views = labels.device, views_of(augment)
    shape = (images.shape[1], images.shape[2], images.shape[3])
    at_once = images_at_once(largest_layer(network, shape), shape, device)
    found = torch.zeros(0)
    start = time.perf_counter()
    for view in range(views):
        noise = random_numbers(augment if view else (), labels, seed, view)
        for rows in torch.arange(len(images)).split(at_once):  # type: ignore[no-untyped-call]
            places = rows.to(device)
            pixels = images[rows].to(device).float() / 255
            pixels = augmented(pixels, augment, noise[places]) if view else pixels
            with torch.autocast(device.type, precision, enabled=precision != torch.float32):
                embedded = network(pixels).float()
            if not len(found):
                found = torch.empty(len(images), views, embedded.shape[1], device=device)
                embedded[0, 0].item()  # waits for it
                seconds = (time.perf_counter() - start) * (views * len(images) / len(rows) - 1)
                changed = f" in {views} views" if views > 1 else ""
                tell(f"the network is frozen: embeds {len(images):,} images{changed} once, about {in_words(seconds)}")
            found[places, view] = embedded
    return EmbeddedOnce(found)
