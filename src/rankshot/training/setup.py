"""Everything that a run needs, made and checked before its first update and before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from rankshot.data.augmentation import random_numbers
from rankshot.data.image_set import ImageSet
from rankshot.fewshot import embed_all
from rankshot.gathering import copy_from_first_, part_of, world_size
from rankshot.losses import ClassifierLoss
from rankshot.losses.batch_loss import BatchLoss
from rankshot.methods import LossMethod, Method
from rankshot.methods.method import Sampler, not_in_parts
from rankshot.models.headed import Centred, Headed, Whitened, headed_in
from rankshot.models.mirrored import Mirrored
from rankshot.processes import check_gpus
from rankshot.vectors import NotFinite

from . import run_folder
from .assembly import (
    Images,
    Objects,
    check_apart,
    check_statistics,
    images_for,
    network_and_method,
    where_images_lie,
    where_to_train,
)
from .batch import Batch
from .compiling import check_can_be_compiled, compile_parts
from .config import TrainConfig
from .inputs import Inputs, Pictures, can_be_embedded_once, embedded_once
from .near_classes import draw_near_classes
from .optimiser import freeze, make_optimiser
from .prefetching import Prefetcher
from .state import Average, live_tensors, put_back
from .step import repeatable
from .validation import Validator

MOST_FOR_A_MEAN = 10_000  # images


@dataclass(frozen=True)
class Setup:
    """The objects of a run, on the training device.

    images     what is learned from and held out
    pixels     of the images to learn from; None: they stay on the CPU, and `prefetcher` brings those of a batch, or a
               frozen network sees each of them once
    frozen     that network, of which only the head learns; None: every update embeds its images
    sampler    draws the images of a batch by the number of its update
    average    the running average of the weights, where there is one
    tensors    everything that an update changes, and what near classes are drawn by, by name: a checkpoint is these
    resumes    whether a checkpoint is there to go on from
    """

    config: TrainConfig
    images: Images
    pixels: Tensor | None
    prefetcher: Prefetcher | None
    frozen: Headed | None
    labels: Tensor
    model: nn.Module
    method: Method
    optimiser: torch.optim.Optimizer
    sampler: Sampler
    validator: Validator
    average: Average | None
    tensors: dict[str, Tensor]
    resumes: bool

    @property
    def head_to_fit(self) -> Whitened | None:
        """One that is fitted to embeddings before it learns, and has not been yet."""
        head = None if self.frozen is None else self.frozen.head
        return head if isinstance(head, Whitened) and not head.is_fitted else None

    def batch(self, update: int, *, ahead: bool = True) -> Batch:
        """What an update learns from; with `ahead` the images of the next ones are on their way too."""
        if self.prefetcher is None:
            indices, images = self.sampler.draw(update), None
        else:
            indices, images = self.prefetcher(update) if ahead else self.prefetcher.now(update)
        indices = indices.to(self.labels.device, non_blocking=True)
        noise = random_numbers(self.config.data.augment, self.labels[indices], self.config.run.seed, update)
        return Batch(indices, noise, images)

    def learning_part(self, tell: Callable[[str], None]) -> tuple[nn.Module, Inputs]:
        """What learns, and what it sees of a batch. What a frozen network makes of the images is computed now."""
        augment = self.config.data.augment
        if self.frozen is None:
            return self.model, Pictures(self.pixels, augment)
        pixels, seed = self.images.train.pixels(), self.config.run.seed
        once = embedded_once(self.frozen.network, pixels, self.labels, augment, seed, self.method.precision, tell)
        if (head := self.head_to_fit) is not None:
            head.fit(once.views, self.labels)
            copy_from_first_([*head.state_dict().values()])
        return self.frozen.head, once

    def centre_head(self) -> None:
        """Give a centred head the mean of some training images, where it has none from batches yet."""
        headed = headed_in(self.model)
        if headed is not None and isinstance(headed.head, Centred) and not headed.head.is_fitted:
            images = self.images.train
            some = torch.linspace(0, len(images) - 1, min(len(images), MOST_FOR_A_MEAN)).long()
            headed.head.fit(embed_all(headed.network, images, some))
            copy_from_first_([headed.head.mean])

    def close(self) -> None:
        """Let go of what a run has made around the objects that it was given."""
        self.method.compiled = self.method.compiled_turn = self.method.ids = None
        if self.prefetcher is not None:
            self.prefetcher.close()

    def averaged_weights(self, update: int) -> dict[str, Tensor] | None:
        """What is validated and saved in place of the network's own weights; None: those."""
        return None if self.average is None or update == 0 else self.average.after(update)


def set_up(config: TrainConfig, folder: Path, objects: Objects, *, resume: bool) -> Setup:
    """From a config, and the objects that are given in place of its names."""
    device, precision = where_to_train(config)
    images = images_for(config, objects)
    check_apart(config.data.name, folder, config.data.root)
    if config.batch.memory > len(images.train):
        few = f"there are {len(images.train)} images to learn from"
        raise ValueError(f"memory is {config.batch.memory}, and {few}: remember no more than these")
    resumes = resume and run_folder.has_checkpoint(folder)
    model, method = _network_and_method(config, folder, images, objects, resumes=resumes)
    check_statistics(config, objects.network, method)
    _check_can_be_shared(config, method, device)
    check_can_be_compiled(config, method)
    if not method.mixed and config.run.precision == "bfloat16":
        raise ValueError(f"{config.method.name} computes in float32 alone: set precision to 'auto' or 'float32'")
    check_precision(model)
    method.precision = precision
    _check_classes(images.train, method)
    model, method = model.to(device).train(), method.to(device)
    freeze(model, config.network.frozen)
    if config.run.compiled:
        compile_parts(config, model, method)
    frozen = _head_that_learns_alone(config, model, method, len(images.train))
    if frozen is None and not resumes:
        _check_can_be_fitted(model)
    lie_on = where_images_lie(config, device, images)
    labels = torch.from_numpy(images.train.labels)
    sampler = _sampler(method, labels, config)  # which draws on the CPU, wherever the images are
    drawn_by = draw_near_classes(config, sampler, images, device, resumes=resumes)
    prefetcher = None
    if frozen is None and (lie_on != device or config.run.images_on == "cpu"):
        prefetcher = Prefetcher(images.train.pixels(), sampler.draw, device, config.run.updates)
    held_out = None if images.held_out is None else images.held_out.pixels().to(lie_on)
    optimiser = make_optimiser(config.optimiser, model, method, config.first_learning_rate, device)
    average = Average(model, config.optimiser.average) if config.optimiser.average else None
    return Setup(
        config=config,
        images=images,
        pixels=images.train.pixels().to(device) if prefetcher is None and frozen is None else None,
        prefetcher=prefetcher,
        frozen=frozen,
        labels=labels.to(device),
        model=model,
        method=method,
        optimiser=optimiser,
        sampler=sampler,
        validator=Validator(config, model, method, images.held_out, held_out),
        average=average,
        tensors=live_tensors(model, method, optimiser, average) | drawn_by,
        resumes=resumes,
    )


def _check_classes(images: ImageSet, method: Method) -> None:
    """By a loss that compares the images of a batch, they learn from the others of their class."""
    loss = getattr(method, "loss", None)
    compares = isinstance(loss, BatchLoss) and not isinstance(loss, ClassifierLoss)
    if compares and len(images) and torch.from_numpy(images.labels).bincount().max() < 2:
        raise ValueError(
            "no training class has two images, and an image learns from the others of its class. To recognise classes from "
            "one image each, nothing needs to be trained: rankshot classify"
        )


def _head_that_learns_alone(config: TrainConfig, model: nn.Module, method: Method, images: int) -> Headed | None:
    """The network, if all that learns of it is its head, by a loss on its embeddings."""
    headed = model.network if isinstance(model, Mirrored) else model
    if not isinstance(headed, Headed) or "all" not in config.network.frozen:
        return None
    if type(method) is not LossMethod or config.run.compiled:
        return None
    return headed if can_be_embedded_once(images, headed.dimensions, config.data.augment) else None


def _check_can_be_fitted(model: nn.Module) -> None:
    """A head that is fitted to embeddings wants them all before the first update."""
    headed = headed_in(model)
    if headed is not None and isinstance(headed.head, Whitened) and not headed.head.is_fitted:
        why = "is fitted to what a network that does not change makes of all images, for a loss on embeddings"
        how = "add --frozen all, leave out --compile and --augment turn, and let the embeddings take no more than 4 GiB"
        raise ValueError(f"a whitened head {why}: {how}")


def _check_can_be_shared(config: TrainConfig, method: Method, device: torch.device) -> None:
    """By as many processes as there are."""
    processes = world_size()
    if processes > config.batch.size:
        few = f"batch_size is {config.batch.size}, and there are {processes} processes"
        raise ValueError(f"{few}: each of them needs an image at least")
    check_gpus(device)
    if processes > 1 and not method.in_parts:
        raise ValueError(not_in_parts(config.method.name))


def _network_and_method(
    config: TrainConfig, folder: Path, images: Images, objects: Objects, *, resumes: bool
) -> tuple[nn.Module, Method]:
    if resumes:  # the checkpoint has all weights
        config = replace(config, network=replace(config.network, init=None))
    start = None if resumes else folder / run_folder.START
    return network_and_method(config, images.preprocess, len(images.train.classes), objects, start)


def check_precision(model: nn.Module) -> None:
    """Weights are float32 whatever the network computes in: updates would be lost in the rounding of others."""
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and weight.dtype != torch.float32:
            raise ValueError(f"the weights of a network must be float32 to learn, and {name!r} is {weight.dtype}: .float()")


def _sampler(method: Method, labels: Tensor, config: TrainConfig) -> Sampler:
    try:
        return method.sampler(labels, config.run.seed)
    except ValueError as error:
        asked = f"(batch_classes is {config.batch.classes}, batch_size {config.batch.size})"
        raise ValueError(f"{error} {asked}") from None


def try_one_batch(setup: Setup) -> None:
    """A mistake in a network or a loss of the user's own is found now."""
    batch, name = setup.batch(0, ahead=False), setup.config.method.name
    indices, images = batch.indices, batch.images
    if images is None:
        images = setup.images.train.pixels()[part_of(indices).cpu()].to(indices.device)
    with repeatable(), put_back(setup.tensors), suppress(NotFinite):  # it comes again in its turn, and is reported then
        setup.method.ids = indices
        try:
            loss, _ = setup.method.learn(setup.model, images.float() / 255, setup.labels[indices])
        except RuntimeError as error:
            if not setup.config.run.compiled or not type(error).__module__.startswith("torch._"):
                raise
            why = str(error).strip().splitlines()[0]
            raise ValueError(f"torch cannot compile this network here: {why}. Leave out --compile") from error
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        if shape != ():
            raise ValueError(f"the loss of {name!r} must be one number, a tensor of shape (), got {shape}")
        if not loss.requires_grad:
            raise ValueError(f"the loss of {name!r} has no gradient: it does not depend on the embeddings")
