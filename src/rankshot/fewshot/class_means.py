"""Classes that a network was trained on, by the mean of each: an image that is near one of them may be none of yours.

They lie with the weights where that helps on classes that the network was not trained on: "none of these" then counts
against an image how near it is to them (`nearness`, which `gallery.rejection` asks).
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

from .episodes import draw_episodes
from .evaluation import embed_all
from .rules import class_sums, prototypes
from .tasks import Classification

TEMPERATURE = 0.1  # of the soft maximum, in cosines; chosen on validation classes (results/trials/rejection.jsonl)
MOST_CLASSES, IMAGES_A_CLASS = 128, 10
WAY, SHOT, EPISODES, RATE = 20, 5, 200, 0.05  # by which it is judged whether they help
AT_LEAST = 1.1  # times as many strangers, to be worth having
MEANS = "means"  # in the file


def some_of_each(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Up to 10 images of up to 128 classes, spread over all of them.

    >>> some_of_each(np.array([0, 1, 0, 3])).tolist()
    [0, 2, 1, 3]
    """
    classes = np.unique(labels)
    chosen = classes[np.linspace(0, len(classes) - 1, min(len(classes), MOST_CLASSES)).round().astype(int)]
    return np.concatenate([_spread(np.flatnonzero(labels == label)) for label in chosen])


def _spread(places: NDArray[Any]) -> NDArray[Any]:
    chosen: NDArray[Any] = np.linspace(0, len(places) - 1, min(len(places), IMAGES_A_CLASS)).round().astype(int)
    return np.asarray(places[chosen])


def measured(network: nn.Module, images: ImageSet) -> Tensor:
    """(classes, D) unit vectors, of an embedding network and the images that it learned from."""
    places = some_of_each(images.labels)
    classes, labels = np.unique(images.labels[places], return_inverse=True)
    vectors = embed_all(network, images.only(places)).cpu()
    return prototypes(vectors, torch.from_numpy(labels), len(classes)).float()


def nearness(to_taught: Tensor, to_others: Tensor | None = None) -> Tensor:
    """How near images are to the taught classes, by their cosines (…, way) with the mean of each: (…,).

    That is the largest of them. Where there are also cosines (…, C) with classes that the network was trained on, it is the
    difference of two soft maxima: how much more an image looks like a taught class than like another one. A class with a
    cosine of -inf is not there.

    >>> nearness(torch.tensor([[0.9, 0.1]])), nearness(torch.tensor([[0.9, 0.9]]), torch.tensor([[0.4]]))
    (tensor([0.9000]), tensor([0.5000]))
    """
    if to_others is None or not to_others.shape[-1]:
        return to_taught.amax(-1)
    against = _soft_maximum(to_others)
    return (_soft_maximum(to_taught) - against).where(against.isfinite(), to_taught.amax(-1))


def _soft_maximum(cosines: Tensor) -> Tensor:
    """Of the mean, not of the sum: a threshold then means about the same among few classes as among many."""
    number = cosines.isfinite().sum(-1).clamp(min=1).to(cosines.dtype)
    return TEMPERATURE * ((cosines / TEMPERATURE).logsumexp(-1) - number.log())


def other_classes(trained: Tensor, support: Tensor, labels: Tensor, way: int) -> Tensor:
    """Of the classes that a network was trained on, those that are none of the taught ones, as far as one can tell.

    The mean of k examples, whose cosines with each other are r, has a cosine of sqrt(k r / (1 + (k - 1) r)) with the mean
    of all images of its class. A class whose mean is as near to that of a taught one, or twice as far at most, is taken for
    it. With single examples alone there is no telling, and all classes are others.
    """
    counts = torch.bincount(labels, minlength=way).to(support)
    return trained[_are_others(trained, class_sums(support, labels, way), counts)]


def _are_others(trained: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
    """(classes, D), and the sums (…, way, D) of the examples of each taught class, so many (way,) -> (…, classes) bool."""
    several = counts > 1
    if not several.any():
        return torch.ones(*sums.shape[:-2], len(trained), dtype=torch.bool, device=sums.device)
    pairs = counts[several] * (counts[several] - 1)
    alike = ((sums[..., several, :].square().sum(-1) - counts[several]) / pairs).mean(-1, keepdim=True).clamp(0, 1)
    expected = (counts * alike / (1 + (counts - 1) * alike)).sqrt()
    limits = 1 - 2 * (1 - expected)
    return ((nn.functional.normalize(sums, dim=-1) @ trained.T) < limits[..., None]).all(-2)


def help_reject(means: Tensor, vectors: Tensor, labels: Tensor) -> bool:
    """Whether clearly more strangers are caught with them than without, where 5 % of known images are turned away.

    In episodes of classes that the network was not trained on, (n, D) unit vectors and (n,) labels; one class of each
    episode has no examples. False also where there are too few classes or images to tell.
    """
    counts = labels.bincount()
    way, shot = min(WAY, int((counts > 0).sum())), min(SHOT, int(counts[counts > 0].min()) - 1)
    if way < 3 or shot < 1:
        return False
    per_class = min(int(counts[counts > 0].min()), shot + 15)
    episodes = draw_episodes(labels, Classification(way, shot, per_class), EPISODES, 0)
    embedded = vectors[episodes]
    centres = nn.functional.normalize(embedded[:, :-1, :shot].mean(2), dim=-1)
    near = embedded[:, :, shot:] @ centres[:, None].mT
    trained = means.to(vectors)
    counts = torch.full((way - 1,), float(shot), dtype=vectors.dtype)
    others = _are_others(trained, embedded[:, :-1, :shot].sum(2), counts)[:, None, None]
    to_others = (embedded[:, :, shot:] @ trained.T).masked_fill(~others, -torch.inf)
    caught = []
    for found in (nearness(near), nearness(near, to_others)):
        threshold = found[:, :-1].flatten().double().quantile(RATE)
        caught.append((found[:, -1] < threshold).double().mean().item())
    return caught[1] > AT_LEAST * caught[0]


def write(folder: Path, means: Tensor | None) -> None:
    """Beside the weights; None: there are none, and none are left from before."""
    if means is None:
        (folder / CLASS_MEANS).unlink(missing_ok=True)
    else:
        write_tensors(folder / CLASS_MEANS, {MEANS: means.half()}, {})  # as exact as such means are


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
