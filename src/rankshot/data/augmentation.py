"""Random changes to a whole batch of images, on whatever device it is.

The random numbers come in as an argument, so that a step with augmentation is a pure function: it can be replayed, resumed
and recorded in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from rankshot.randomness import generator_for

OF_IMAGE = 6  # random numbers that an image has to itself
RANDOM_NUMBERS = OF_IMAGE + 1  # an image: how many of them the augmentations below look at; the last is that of its class
MOST_CLASSES = 2**13  # that have a random number of their own


def augmented(images: Tensor, kinds: Sequence[str], noise: Tensor) -> Tensor:
    """(B, C, H, W) float, names from AUGMENTATIONS, (B, RANDOM_NUMBERS) uniform in [0, 1) -> (B, C, H, W).

    >>> augmented(torch.arange(3.0).view(1, 1, 1, 3), ["flip"], torch.zeros(1, RANDOM_NUMBERS))
    tensor([[[[2., 1., 0.]]]])
    """
    check_augmentations(kinds, images.shape)
    for kind in kinds:
        images = AUGMENTATIONS[kind](images, noise)
    return images


def random_numbers(kinds: Sequence[str], labels: Tensor, seed: int, update: int) -> Tensor:
    """(B,) labels -> (B, RANDOM_NUMBERS) for the augmentation of a batch: some of each image, and one of its class."""
    device = labels.device
    if not kinds:
        return torch.zeros(len(labels), RANDOM_NUMBERS, device=device)
    generator = generator_for(seed, "noise", update, device=device)
    numbers = nn.functional.pad(torch.rand(len(labels), OF_IMAGE, generator=generator, device=device), (0, 1))
    if "turn" in kinds:
        numbers[:, OF_IMAGE] = torch.rand(MOST_CLASSES, generator=generator, device=device)[labels % MOST_CLASSES]
    return numbers


def check_augmentations(kinds: Sequence[str], shape: Sequence[int] | None = None) -> None:
    """Complain about an unknown one, or one that images of this shape (C, H, W) cannot have."""
    if "turn" in kinds and shape is not None and shape[-1] != shape[-2]:
        raise ValueError(f"only square images can be turned, got {shape[-2]}x{shape[-1]} pixels")
    for kind in kinds:
        if kind not in AUGMENTATIONS:
            raise ValueError(f"unknown augmentation {kind!r}: there is {', '.join(map(repr, AUGMENTATIONS))}")


def flip(images: Tensor, noise: Tensor) -> Tensor:
    """Half of the images mirrored, left to right."""
    return torch.where(noise[:, 0, None, None, None] < 0.5, images.flip(-1), images)


def crop(images: Tensor, noise: Tensor) -> Tensor:
    """Moved by up to a tenth of the size each way; what comes in from outside is black."""
    height, width = images.shape[2:]
    far_y, far_x = round(height / 10), round(width / 10)
    padded = nn.functional.pad(images, (far_x, far_x, far_y, far_y))
    rows = (noise[:, 1:2] * (2 * far_y + 1)).long() + torch.arange(height, device=images.device)
    columns = (noise[:, 2:3] * (2 * far_x + 1)).long() + torch.arange(width, device=images.device)
    batch = torch.arange(len(images), device=images.device)
    # Indices beside a slice put their own dimensions first: (B, H, W, C).
    return padded[batch[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def jitter(images: Tensor, noise: Tensor) -> Tensor:
    """Brightness, contrast and, of colour images, saturation, each by 0.6 to 1.4 times."""
    brightness, contrast, saturation = (0.6 + 0.8 * noise[:, column, None, None, None] for column in (3, 4, 5))
    images = images * brightness
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean + contrast * (images - mean)
    grey = images.mean(1, keepdim=True)
    return (grey + saturation * (images - grey) if images.shape[1] > 1 else images).clamp(0, 1)


def turn(images: Tensor, noise: Tensor) -> Tensor:
    """Half of the classes turned, by 90, 180 or 270 degrees: all images of a class alike, as if it were another class."""
    quarters = ((noise[:, OF_IMAGE] - 0.5) * 6).floor().clamp(min=-1).long() + 1
    turned = torch.stack([images.rot90(quarter, (2, 3)) for quarter in range(4)])
    return turned[quarters, torch.arange(len(images), device=images.device)]


AUGMENTATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"flip": flip, "crop": crop, "jitter": jitter, "turn": turn}
