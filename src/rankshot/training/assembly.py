"""What a run works with, made of its config or of objects that are given: images, network, method."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankshot import data
from rankshot.data.augmentation import check_augmentations
from rankshot.data.loading import own_source
from rankshot.data.store import NoClasses
from rankshot.hardware import device_for
from rankshot.methods import Context, LossMethod, Method, make_method
from rankshot.models.headed import headed_in
from rankshot.models.network import build, describe, preprocess_for, preprocess_of, trunk_of
from rankshot.models.pretrained import fill, from_pretrained
from rankshot.models.saving import description_of
from rankshot.models.shipped import folder_of, full_name
from rankshot.preprocess import Preprocess
from rankshot.randomness import generator_for
from rankshot.registry import Choice
from rankshot.tensors import read_tensors

from .config import TrainConfig
from .optimiser import STATISTICS

MOST_OF_GPU = 0.5  # of the memory that is free, that images take; the rest is for learning from them
GIVEN = "given from Python"  # the name of data that is


def check_statistics(config: TrainConfig, network: nn.Module | None = None, method: Method | None = None) -> None:
    """Frozen statistics of batch norm must be there, and count."""
    if STATISTICS not in config.network.frozen:
        return
    if config.network.init is None and network is None:
        raise ValueError("frozen statistics are those of a network that has learned before: add --init")
    if method is not None and not method.in_parts:
        raise ValueError(f"{config.method.name} normalises every task by itself: leave out --frozen statistics")


@dataclass(frozen=True)
class Objects:
    """What a caller gives instead of its name; None: as the config says."""

    network: nn.Module | None = None
    method: Method | Any | None = None
    loss: nn.Module | Any | None = None
    train_set: data.ImageSet | None = None
    val_set: data.ImageSet | None = None

    def __post_init__(self) -> None:
        if self.method is not None and self.loss is not None:
            raise ValueError("a loss is a method by itself: give one of them")
        if self.loss is not None and (inspect.isclass(self.loss) or not callable(self.loss)):
            raise TypeError(f"a loss is an object that is called with embeddings and labels, got {self.loss!r:.60}")
        if self.method is not None and not callable(self.method):
            raise TypeError(f"a method is a rankshot.methods.Method, or makes one of a Context, got {self.method!r:.60}")
        for name in ("train_set", "val_set"):
            if not isinstance(getattr(self, name), (data.ImageSet, type(None))):
                raise TypeError(f"{name} must be a rankshot.data.ImageSet, got {getattr(self, name)!r:.60}")
        if self.network is not None and not isinstance(self.network, nn.Module):
            raise TypeError(f"network must be a torch.nn.Module, got {self.network!r:.60}")
        sets = [images.classes for images in (self.train_set, self.val_set) if images is not None]
        if len(sets) == 2 and (both := set(sets[0]) & set(sets[1])):
            raise ValueError(f"{min(both)!r} is in train_set and in val_set: validate on classes that it does not see")

    def named_in(self, config: TrainConfig) -> TrainConfig:
        """The config, which tells what was given by its name, and where the weights that it names lie from anywhere."""
        network = replace(config.network, init=full_name(config.network.init))
        if self.network is not None and config.network.mirror:
            raise ValueError("mirror is for networks by name: give rankshot.models.Mirrored(network), wrapped")
        if self.network is not None and config.network.head is not None:
            raise ValueError("head is for networks by name: give torch.nn.Sequential(network, torch.nn.Linear(…)), wrapped")
        if self.network is not None:
            network = replace(network, architecture=Choice(described(self.network)["name"], is_object=True))
        learned = self.method if self.method is not None else self.loss
        method = config.method if learned is None else Choice(_name_of(learned), is_object=True)
        where = config.data if self.train_set is None else replace(config.data, name=GIVEN)
        batch = replace(config.batch, similar_by=full_name(config.batch.similar_by))
        return replace(config, data=where, network=network, method=method, batch=batch)


def _name_of(given: Any) -> str:
    return str(getattr(given, "__name__", type(given).__name__))


def described(network: nn.Module) -> Mapping[str, Any]:
    """What a network is, which one of one's own is told by `wrap`."""
    preprocess_of(network)
    return description_of(network)


@dataclass(frozen=True)
class Images:
    """What is learned from, and held out.

    seen       the training classes, before they are turned
    train      what batches are drawn from
    held_out   the validation classes; None: there is no validation
    preprocess how the pictures were made ready
    """

    seen: data.ImageSet
    train: data.ImageSet
    held_out: data.ImageSet | None
    preprocess: Preprocess


def images_for(config: TrainConfig, objects: Objects) -> Images:
    seen = objects.train_set
    if seen is None and config.data.name == GIVEN:
        raise ValueError("the images were given from Python: give them again, as train_set=… and val_set=…")
    if seen is None:
        seen = data.load(config.data.name, config.data.split, config.data.root)
        preprocess = data.preprocess_of(config.data.name, config.data.root)
        if config.data.size not in (None, preprocess.height):
            found = f"{preprocess.height}x{preprocess.width}"
            raise ValueError(
                f"size is {config.data.size}, and the images of {config.data.name} are {found}: "
                "rankshot.config_for(data=…, size=…) makes them ready"
            )
    else:
        preprocess = Preprocess(*seen.images.shape[1:])
    train = seen.with_rotations() if config.data.rotations else seen
    held_out = objects.val_set
    if held_out is None and config.validation.every:
        if objects.train_set is not None:
            raise ValueError("there are no classes to validate on: give val_set too, or set validate_every to 0")
        try:
            held_out = load(config, "val")
        except NoClasses as error:
            raise ValueError(f"{error}: to train without validation, set validate_every to 0") from None
    if not config.validation.every:
        held_out = None
    check_augmentations(config.data.augment, train.images.shape[1:])
    if held_out is not None and held_out.images.shape[1:] != train.images.shape[1:]:
        sizes = ["x".join(map(str, images.images.shape[1:])) for images in (train, held_out)]
        raise ValueError(f"images to learn from are {sizes[0]}, those to validate on {sizes[1]}: make them alike")
    return Images(seen, train, held_out, preprocess)


def load(config: TrainConfig, split: str) -> data.ImageSet:
    """One split of the config's data set."""
    images = data.load(config.data.name, split, config.data.root)
    return images.with_rotations() if config.data.rotations else images


def where_images_lie(config: TrainConfig, device: torch.device, images: Images) -> torch.device:
    """On the training device, where there is room for them. On a CPU they stay where they are."""
    asked = config.run.images_on
    if asked == "cuda" and device.type != "cuda":
        raise ValueError("images_on is 'cuda', but the network learns on the CPU: leave it at 'auto', or train on a GPU")
    if device.type != "cuda" or asked == "cuda":
        return device
    size = sum(each.images.nbytes for each in (images.train, images.held_out) if each is not None)
    fits = asked == "auto" and size <= MOST_OF_GPU * torch.cuda.mem_get_info(device)[0]
    return device if fits else torch.device("cpu")


def check_apart(name: str, folder: Path, root: str | None) -> None:
    """A run within the images that it learns from would be one of their classes."""
    source = own_source(name, root)
    if source is not None and source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{folder} lies within the images of {name}: name a folder elsewhere with --out")


def network_and_method(
    config: TrainConfig, pictures: Preprocess, classes: int, objects: Objects, start: Path | None
) -> tuple[nn.Module, Method]:
    """The network that is kept, and how it learns: as the seed has their weights, or as `init` or `start` has them.

    pictures   how the images were made ready
    classes    how many there are to learn from
    start      a file of first weights, that a run keeps whatever has become of where they came from
    """
    with _seeded(config.run.seed):
        embedder = _embedder(config, pictures, objects)
        context = Context(int(embedder.embedding_dim), classes, config.batch.classes, config.batch.size)  # type: ignore[arg-type]
        method = _method(config, context, objects)
        model = method.network(embedder)
    if config.network.head == "centred" and model is not embedder:
        raise ValueError(
            f"a centred head changes embeddings in the test alone, and {config.method.name} has learned to compare them as "
            "they are: leave out head"
        )
    for name in ("memory", "micro_batch"):
        if getattr(config.batch, name) and not isinstance(method, LossMethod):
            raise ValueError(f"{name} is for methods that are a loss on embeddings, and {config.method.name} is none")
    if config.batch.memory and isinstance(method, LossMethod):
        method.remember(config.batch.memory)
    init = config.network.init
    if start is not None and start.is_file():
        fill(model.state_dict(), read_tensors(start), start)
    elif init is not None:
        begin_with(model, init, objects.network)
    return model, method


def _embedder(config: TrainConfig, pictures: Preprocess, objects: Objects) -> nn.Module:
    if objects.network is not None:
        check_pictures(preprocess_of(objects.network), pictures, is_given=objects.train_set is not None)
        return objects.network
    architecture = config.network.architecture
    if architecture.is_object:
        raise ValueError(f"the network {architecture.name!r} was given from Python: give it again, as network=…")
    preprocess = preprocess_for(architecture.name, pictures)
    network = config.network
    description = describe(architecture.name, preprocess, architecture.settings, mirror=network.mirror, head=network.head)
    return build(description, preprocess)


def check_pictures(wanted: Preprocess, pictures: Preprocess, *, is_given: bool) -> None:
    """What a network says of its pictures must be how those that it learns from were made ready.

    is_given   by the caller, as an ImageSet: then only their size is known
    """
    if wanted.shape != pictures.shape:
        sizes = ["x".join(map(str, preprocess.shape)) for preprocess in (wanted, pictures)]
        raise ValueError(f"the network takes images of {sizes[0]} (channels, height, width), and these are {sizes[1]}")
    as_made = replace(pictures, mean=wanted.mean, deviation=wanted.deviation)  # which the network takes off by itself
    if wanted != as_made and not is_given:
        raise ValueError(
            f"the network wants pictures {wanted}, and these were made ready {as_made}: wrap it with their preprocess, or "
            "let rankshot.config_for(data=…, network=network) make pictures of your own ready for it"
        )


def _method(config: TrainConfig, context: Context, objects: Objects) -> Method:
    if objects.loss is not None:
        return LossMethod(context, objects.loss)
    if objects.method is None and config.method.is_object:
        raise ValueError(f"{config.method.name!r} was given from Python: give it again, as method=… or loss=…")
    if objects.method is None:
        return make_method(config.method, context)
    made = objects.method if isinstance(objects.method, Method) else objects.method(context)
    if not isinstance(made, Method):
        raise TypeError(f"a method is a rankshot.methods.Method, or makes one of a Context, got {made!r:.60}")
    return made


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """First weights by the seed, whatever torch's global generator has been through."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(generator_for(seed, "weights").initial_seed())
        yield


def begin_with(model: nn.Module, init: str, own: nn.Module | None = None) -> None:
    """The weights of another network into this one's: of the embedding networks within both, of the same kind, and of their
    heads, where both have one.

    own   the network that was given, which those weights may be of
    """
    whole = from_pretrained(init, None if own is None else copy.deepcopy(own))
    theirs, ours = trunk_of(whole), trunk_of(model)
    kinds = [getattr(network, "description", {"name": type(network).__name__}) for network in (theirs, ours)]
    if kinds[0]["name"] != kinds[1]["name"]:
        raise ValueError(
            f"{init} is a network {kinds[0]['name']!r}, and this run's is {kinds[1]['name']!r}: begin with one of its kind"
        )
    into, stored = ours.state_dict(), theirs.state_dict()
    try:
        fill(into, {name: tensor for name, tensor in stored.items() if name in into}, folder_of(init))
    except ValueError as error:
        descriptions = [
            ", ".join(f"{name} {value}" for name, value in kind.items() if name not in ("name", "mirror", "head"))
            for kind in kinds
        ]
        raise ValueError(f"{init} has {descriptions[0]}, and this network {descriptions[1]}: {error}") from None
    begins, goes_on = headed_in(whole), headed_in(model)
    if begins is not None and goes_on is not None and _is_alike(begins.head, goes_on.head):
        fill(goes_on.head.state_dict(), begins.head.state_dict(), folder_of(init))


def _is_alike(one: nn.Module, other: nn.Module) -> bool:
    """Whether weights of one fit the other; a head of another kind or size begins with its own."""
    shapes = [{name: tensor.shape for name, tensor in head.state_dict().items()} for head in (one, other)]
    return shapes[0] == shapes[1]


def where_to_train(config: TrainConfig) -> tuple[torch.device, torch.dtype]:
    """The device, and what the network computes in there."""
    device = device_for(config.run.device)
    by_itself = "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    precision: torch.dtype = getattr(torch, by_itself if config.run.precision == "auto" else config.run.precision)
    return device, precision
