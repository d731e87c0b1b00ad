"""Images and their labels, as one value."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of known classes.

    Tensors on the CPU become arrays, and so do labels that are a list.

    Attributes:
        images: (n, C, H, W) uint8, usually memory-mapped.
        labels: (n,) int64, indices into `classes`.
        classes: one name a class.

    Raises:
        TypeError: if images or labels are no arrays.
        ValueError: if shapes, types or labels do not fit; the message tells what would.

    Examples:
        >>> import numpy as np
        >>> from rankshot import data
        >>> images = data.ImageSet(np.zeros((4, 1, 28, 28), np.uint8), [0, 0, 0, 1], ["cat", "dog"])
        >>> images
        ImageSet(4 images of 1x28x28, 2 classes)
        >>> images.smallest_class
        1
        >>> images.with_rotations().classes[:4]
        ('cat/000', 'dog/000', 'cat/090', 'dog/090')
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        self._make_arrays()
        if self.images.ndim != 4 or self.images.dtype != np.uint8:
            raise ValueError(f"images must be (n, C, H, W) uint8, got {self.images.shape} {self.images.dtype}")
        _, channels, height, width = self.images.shape
        if width in (1, 3, 4) and min(channels, height) > 4:
            raise ValueError(
                f"images must be (n, C, H, W), channels first, got {self.images.shape}: write images.transpose(0, 3, 1, 2)"
            )
        if self.labels.dtype.kind not in "iu":
            raise ValueError(f"labels must be whole numbers, indices into classes, got {self.labels.dtype}")
        if self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"{len(self.images)} images need as many labels, got shape {self.labels.shape}")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            wrong = next(label for label in self.labels.tolist() if not 0 <= label < len(self.classes))
            raise ValueError(f"labels must be from 0 to {len(self.classes) - 1}, one for each class, got {wrong}")

    def _make_arrays(self) -> None:
        """Of what else people have."""
        given: dict[str, Any] = {"images": self.images, "labels": self.labels}
        for name, values in given.items():
            if isinstance(values, torch.Tensor):
                if values.device.type != "cpu":
                    raise ValueError(f"{name} must be on the CPU, got a tensor on {values.device}: write {name}.cpu()")
                given[name] = values.detach().numpy()
        if isinstance(given["labels"], (list, tuple)):
            given["labels"] = np.asarray(given["labels"])
        for name, values in given.items():
            if not isinstance(values, np.ndarray):
                raise TypeError(f"{name} must be a NumPy array, got a {type(values).__name__}: write np.stack({name})")
            object.__setattr__(self, name, values)
        if self.labels.dtype.kind in "iu" or not self.labels.size:
            object.__setattr__(self, "labels", self.labels.astype(np.int64, copy=False))
        object.__setattr__(self, "classes", tuple(self.classes))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        size = "x".join(str(length) for length in self.images.shape[1:])
        return f"ImageSet({len(self)} images of {size}, {len(self.classes)} classes)"

    @property
    def smallest_class(self) -> int:
        """The number of images of the smallest class; classes without images do not count."""
        return int(np.unique(self.labels, return_counts=True)[1].min())

    def pixels(self) -> torch.Tensor:
        """The images as a tensor (n, C, H, W) uint8 that shares their memory. Read only: the memory may be a file."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(self.images)

    def only(self, places: NDArray[np.int64]) -> ImageSet:
        """Some of the images, by their indices (m,); the classes stay the same."""
        return ImageSet(self.images[places], self.labels[places], self.classes)

    def with_rotations(self) -> ImageSet:
        """Four classes of each: the images as they are, and turned by 90, 180 and 270 degrees.

        Raises:
            ValueError: if the images are not square.
        """
        if self.images.shape[2] != self.images.shape[3]:
            raise ValueError(f"only square images can be turned into classes, got {self.images.shape[2:]}")
        turns = range(4)
        return ImageSet(
            images=np.concatenate([np.rot90(self.images, turn, axes=(2, 3)) for turn in turns]),
            labels=np.concatenate([self.labels + turn * len(self.classes) for turn in turns]),
            classes=tuple(f"{name}/{90 * turn:03d}" for turn in turns for name in self.classes),
        )
