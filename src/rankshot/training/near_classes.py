"""Batches of classes that are near each other: by which means of the training classes, and how that is kept."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankshot.data import ImageSet
from rankshot.data.batches import ClassBatchSampler
from rankshot.data.class_choice import NearFirst, candidates, near_each_other, near_ones
from rankshot.fewshot import Answerer, embed_all
from rankshot.methods.method import Sampler
from rankshot.models.network import preprocess_of, trunk_of
from rankshot.models.pretrained import from_pretrained

from .assembly import GIVEN, Images, check_pictures
from .config import TrainConfig

IMAGES_A_CLASS = 100  # whose mean is taken
NEIGHBOURS = "batch.neighbours"  # in a checkpoint


def draw_near_classes(
    config: TrainConfig, sampler: Sampler, images: Images, device: torch.device, *, resumes: bool
) -> dict[str, Tensor]:
    """Let the sampler draw classes as the config asks; returns what a checkpoint keeps of it, by name.

    resumes   the neighbours are in a checkpoint, and not computed again: the weights that they came from may have gone
    """
    share, wanted = config.batch.similar, config.batch.classes
    if not share:
        return {}
    if not isinstance(sampler, ClassBatchSampler):
        raise ValueError(
            f"batch_similar is for methods that learn from batches of some classes, and {config.method.name} draws its own"
        )
    if resumes:
        near, available = near_ones(wanted, share), sampler.n_available
        sampler.choose = NearFirst(torch.zeros(available, candidates(available, near), dtype=torch.long), near)
    else:
        sampler.choose = near_each_other(means_of(config, images, device), wanted, share)
    return {NEIGHBOURS: sampler.choose.neighbours.to(device)}


def settle(sampler: Sampler, tensors: dict[str, Tensor]) -> None:
    """Draw by the neighbours that a checkpoint has, or the first process: batches are drawn on the CPU."""
    choose = getattr(sampler, "choose", None)
    if NEIGHBOURS in tensors and isinstance(choose, NearFirst):
        choose.neighbours = tensors[NEIGHBOURS].cpu()


def means_of(config: TrainConfig, images: Images, device: torch.device) -> Tensor:
    """(C, D): of every class the mean embedding by the weights of `similar_by`, or the mean image."""
    chosen = images.train.only(some_of_each(images.train.labels))
    vectors = chosen.images  # in float64 only class by class: there may be many
    if config.batch.similar_by is not None:
        vectors = embedded(config, config.batch.similar_by, images, chosen, device).numpy()
    classes = np.unique(chosen.labels)
    means = np.stack([vectors[chosen.labels == label].mean(0, dtype=np.float64).ravel() for label in classes])
    return torch.from_numpy(means)


def embedded(config: TrainConfig, weights: str, images: Images, chosen: ImageSet, device: torch.device) -> Tensor:
    """(n, D) unit vectors."""
    network = from_pretrained(weights).to(device)
    if isinstance(network, Answerer):
        network = trunk_of(network)
    try:
        check_pictures(preprocess_of(network), images.preprocess, is_given=config.data.name == GIVEN)
    except ValueError as error:
        raise ValueError(f"batch_similar_by is {weights}: {error}") from None
    return embed_all(network, chosen).cpu()


def some_of_each(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Up to 100 images of every class, evenly chosen."""
    chosen = []
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        spread = np.linspace(0, len(places) - 1, min(len(places), IMAGES_A_CLASS)).round().astype(int)
        chosen.append(places[spread])
    return np.concatenate(chosen)
