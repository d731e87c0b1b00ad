"""The classes that a network was trained on, by the mean of each: an image that is near one of them may be none of yours.

They lie with the weights. "None of these" counts against an image how near it is to them (`gallery.rejection`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankshot.data import ImageSet
from rankshot.models.folder_files import CLASS_MEANS
from rankshot.tensors import read_tensors, write_tensors

from .answerer import Answerer
from .evaluation import embed_all
from .rules import prototypes

MOST_CLASSES, IMAGES_A_CLASS = 256, 20
MEANS = "means"  # in the file


def some_of_each(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Up to 20 images of up to 256 classes, spread over all of them.

    >>> some_of_each(np.array([0, 1, 0, 3])).tolist()
    [0, 2, 1, 3]
    """
    classes = np.unique(labels)
    chosen = classes[np.linspace(0, len(classes) - 1, min(len(classes), MOST_CLASSES)).round().astype(int)]
    return np.concatenate([_spread(np.flatnonzero(labels == label)) for label in chosen])


def _spread(places: NDArray[Any]) -> NDArray[Any]:
    chosen: NDArray[Any] = np.linspace(0, len(places) - 1, min(len(places), IMAGES_A_CLASS)).round().astype(int)
    return np.asarray(places[chosen])


def measured(network: nn.Module, images: ImageSet) -> Tensor | None:
    """(classes, D) unit vectors; None: the network has no embeddings."""
    if isinstance(network, Answerer):
        return None
    places = some_of_each(images.labels)
    _, labels = np.unique(images.labels[places], return_inverse=True)
    vectors = embed_all(network, ImageSet(images.images[places], labels, tuple(map(str, range(labels.max() + 1)))))
    return prototypes(vectors.cpu(), torch.from_numpy(labels), int(labels.max()) + 1).float()


def write(folder: Path, means: Tensor) -> None:
    write_tensors(folder / CLASS_MEANS, {MEANS: means}, {})


def read(folder: Path) -> Tensor | None:
    """What lies with the weights, if anything: (classes, D) float64, of length 1."""
    path = folder / CLASS_MEANS
    if not path.is_file():
        return None
    found = read_tensors(path)
    means = found.get(MEANS)
    if means is None or means.dim() != 2 or not len(means) or not means.isfinite().all():
        raise ValueError(f"{path} is damaged: it should hold the means of classes, one a row")
    return nn.functional.normalize(means.double(), dim=-1)
