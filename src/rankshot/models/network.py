"""Networks as parts: registered by name, built from a description, or any module of one's own.

Every network carries what others need to know of it:

    embedding_dim   how many numbers an embedding has
    preprocess      how a picture becomes what it sees
    description     what `build` makes it from again: its name, its settings, and what it is built around
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Required, TypedDict

import torch
from torch import Tensor, nn

from rankshot.preprocess import Preprocess, check_preprocess
from rankshot.registry import LONGEST_NAME, Part, Registry
from rankshot.schema import Between, Length, checked

from .headed import Head, Headed
from .mirrored import Mirrored
from .normalised import Normalised, normalised

CONTRACT = ("embedding_dim", "preprocess", "description", "wrapped_network")
NETWORKS = Registry("network", home="rankshot.methods", about={"preprocess": Preprocess, "own_kernels": bool})
register = NETWORKS.register
# What a network's constructor may be given by a file from elsewhere, by the hints of its arguments; the limits of one's own
# are those of its own annotations.
BOUNDED: dict[Any, Any] = {
    int: Annotated[int, Between(1, 2**14)],
    float: Annotated[float, Between(-1e9, 1e9)],
    str: Annotated[str, Length(1000)],
}


class Description(TypedDict, total=False):
    """A network by its name and settings; `embedder` is the embedding network that it is built around, if it is."""

    name: Required[Annotated[str, Length(LONGEST_NAME)]]
    in_channels: Annotated[int, Between(1, 2**14)]
    mirror: bool
    head: Head
    embedder: Description


def describe(
    name: str, preprocess: Preprocess, settings: Mapping[str, Any], *, mirror: bool = False, head: Head | None = None
) -> dict[str, Any]:
    """What `build` takes: of an embedding network with these settings."""
    description = {"name": name, "in_channels": preprocess.channels, **settings}
    description |= {"mirror": True} if mirror else {}
    return description | ({} if head is None else {"head": head})


def build(description: Mapping[str, Any], preprocess: Preprocess | None = None) -> nn.Module:
    """A network from its description, for pictures that are made ready in this way; None: of a usual size."""
    preprocess = preprocess or usual_preprocess(description)
    network = assemble(description, preprocess)
    if "embedder" not in description:
        network.embedding_dim = measured_dim(network, preprocess, str(description["name"]))  # type: ignore[assignment]
    return network


def assemble(description: Mapping[str, Any], preprocess: Preprocess) -> nn.Module:
    """The same, without its `embedding_dim`, which a picture through it tells."""
    settings: dict[str, Any] = checked(dict(description), Description, "the description of a network")
    name, inner = settings.pop("name"), settings.pop("embedder", None)
    part = NETWORKS[name]
    if inner is not None:
        embedder = build(inner, preprocess)
        if "dimensions" in settings:  # as earlier versions told it
            embedder.embedding_dim = settings.pop("dimensions")
        return made(part, description, settings, embedder)
    channels, mirror = settings.pop("in_channels", preprocess.channels), settings.pop("mirror", False)
    head = settings.pop("head", None)
    if channels != preprocess.channels:
        raise ValueError(f"a network {name!r} for {channels} channels cannot see pictures of {preprocess.channels}")
    network = made(part, description, settings, preprocess)
    network = normalised(network, preprocess)
    network = network if head is None else Headed(network, measured_dim(network, preprocess, name), head)
    network = Mirrored(network) if mirror else network
    network.preprocess, network.description = preprocess, dict(description)  # type: ignore[assignment]
    return network


def made(part: Part, description: Mapping[str, Any], settings: Mapping[str, Any], around: Any) -> nn.Module:
    """By its constructor: around an embedding network, or for pictures."""
    for name in settings.keys() - part.types.keys():
        known = ", ".join(map(repr, part.types)) or "none"
        raise ValueError(f"a network {part.name!r} has no setting {name!r}: there is {known}")
    values = {
        name: checked(value, BOUNDED.get(hint, hint) if part.is_ours else hint, f"{name} of a network {part.name!r}")
        for name, value, hint in ((name, value, part.types[name]) for name, value in settings.items())
    }
    try:
        network: Any = part(around, **values)
    except (TypeError, ValueError, RuntimeError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == part.file]
        where = f" ({part.file}, line {lines[-1]})" if lines and not part.is_ours else ""
        raise ValueError(f"a network {part.name!r} cannot be made: {error}{where}") from error
    if not isinstance(network, nn.Module):
        raise ValueError(f"the network {part.name!r} is no torch.nn.Module: {part.file} makes a {type(network).__name__}")
    if isinstance(around, nn.Module):
        network.preprocess = around.preprocess
        if not hasattr(network, "embedding_dim"):  # its embeddings are those of the network that it is built around
            network.embedding_dim = around.embedding_dim
    network.description = dict(description)  # type: ignore[assignment]
    return network


def build_around(embedder: nn.Module, name: str, **settings: Any) -> nn.Module:
    """A registered network that is built around an embedding network, which is there already."""
    description = {"name": name, "embedder": embedder.description, **settings}
    return made(NETWORKS[name], description, settings, embedder)


def usual_preprocess(description: Mapping[str, Any]) -> Preprocess:
    """Of networks that were saved before folders told it: their channels, and a size that any of them can take."""
    channels = embedder_in(description).get("in_channels", 3)
    return Preprocess(channels, *((28, 28) if channels == 1 else (84, 84)))


def wrap(module: nn.Module, *, preprocess: Preprocess, name: str | None = None) -> nn.Module:
    """Make any module an embedding network, for `train`, `FewShotClassifier`, `Gallery` and `save_pretrained`.

    The network takes float images (B, C, H, W) from 0 to 1 and gives embeddings (B, D). If `preprocess` has a mean and a
    deviation, the module sees images normalised by these. The result has the attributes `embedding_dim`, `preprocess` and
    `description`.

    Args:
        module: takes images (B, C, H, W) and gives (B, D).
        preprocess: what pictures it takes.
        name: by which it is known again. None: the name of its class.

    Returns:
        The embedding network: the module itself, or one around it.

    Raises:
        TypeError: if `module` is not a `torch.nn.Module`, or `preprocess` not a `Preprocess`.
        ValueError: if the module does not take such images or does not give (B, D), is an embedding network of rankshot's
            already, or its name is taken.

    Examples:
        >>> from torch import nn
        >>> import rankshot
        >>> module = nn.Sequential(nn.Conv2d(3, 8, kernel_size=3), nn.Flatten())
        >>> network = rankshot.wrap(module, preprocess=rankshot.Preprocess(3, 16, 16), name="tiny")
        >>> network.embedding_dim  # 8 filters at 14 x 14 places
        1568
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"a network is a torch.nn.Module, got {module!r:.60}")
    check_preprocess(preprocess)
    if name is not None and not (isinstance(name, str) and 0 < len(name) <= LONGEST_NAME):
        raise ValueError(f"the name of a network must be a text of 1 to {LONGEST_NAME} characters, got {name!r:.60}")
    own = getattr(module, "description", None)
    if is_wrapped(module):
        if isinstance(module, Normalised | Around | Mirrored) or own["name"] in NETWORKS:  # type: ignore[index]
            name = type(module).__name__
            raise ValueError(f"{name} is a network of rankshot's already, for pictures {module.preprocess}")
        own = None  # a module of one's own that is wrapped once more, as in a notebook
    if isinstance(own, Mapping) and own.get("name") in NETWORKS:  # of rankshot's own: it only has no pictures yet
        description, network = dict(own), normalised(module, preprocess)
        name = str(own["name"])
    else:
        name = name or type(module).__name__
        if name in NETWORKS:
            raise ValueError(f"there is a network {name!r} in rankshot: call yours otherwise, wrap(…, name=…)")
        description, network = describe(name, preprocess, {}), normalised(module, preprocess)
        if network is module and not is_wrapped(module) and any(hasattr(module, attribute) for attribute in CONTRACT):
            network = Around(module)  # which has attributes of these names that mean something else
    network.embedding_dim = measured_dim(network, preprocess, name)  # type: ignore[assignment]
    network.preprocess, network.description = preprocess, description  # type: ignore[assignment]
    return network


class Around(nn.Module):
    """A module of one's own that has attributes of the names that every network of rankshot carries."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.network(images)
        return embeddings


def is_wrapped(network: nn.Module) -> bool:
    """Whether it tells what it is and what pictures it takes, in our way."""
    description, preprocess = getattr(network, "description", None), getattr(network, "preprocess", None)
    return isinstance(description, Mapping) and isinstance(preprocess, Preprocess)


def measured_dim(network: nn.Module, preprocess: Preprocess, name: str) -> int:
    """How many numbers an embedding has, by trying; the network is as it was before."""
    like = next((parameter for parameter in network.parameters() if parameter.is_floating_point()), torch.zeros(0))
    images = torch.zeros(2, *preprocess.shape, dtype=like.dtype, device=like.device)
    training = [(module, module.training) for module in network.modules()]
    try:
        with torch.no_grad():
            embeddings = network.eval()(images)
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        size = "x".join(map(str, preprocess.shape))
        raise ValueError(f"the network {name!r} cannot take images of {size} (channels, height, width): {error}") from None
    finally:
        for module, mode in training:
            module.training = mode
    shape = tuple(getattr(embeddings, "shape", ()))
    if len(shape) != 2 or shape[0] != 2 or shape[1] == 0 or not embeddings.is_floating_point():
        got = f"shape {shape} of {embeddings.dtype}" if shape else f"a {type(embeddings).__name__}"
        raise ValueError(
            f"the network {name!r} must give one embedding an image, (B, D) of floats, and gives {got} for 2 images: "
            "let it end with pooling and torch.nn.Flatten()"
        )
    return int(shape[1])


def preprocess_for(name: str, pictures: Preprocess) -> Preprocess:
    """How a network of this name takes such pictures: with the mean and deviation that it was registered with."""
    own: Preprocess | None = NETWORKS[name].about.get("preprocess")
    if own is None or own.channels != pictures.channels:
        return pictures
    return replace(pictures, mean=own.mean, deviation=own.deviation)


def preprocess_of(network: nn.Module) -> Preprocess:
    """How a picture becomes what a network sees, which every network carries with it."""
    preprocess = getattr(network, "preprocess", None)
    if not isinstance(preprocess, Preprocess):
        raise ValueError(
            f"{type(network).__name__} does not tell what pictures it takes: rankshot.wrap(network, "
            "preprocess=Preprocess(channels, height, width)) makes a network of one's own known"
        )
    return preprocess


def embedding_networks() -> dict[str, Part]:
    """By name; others are built around one of them."""
    return {name: part for name, part in NETWORKS.items() if not _is_built_around(part)}


def _is_built_around(part: Part) -> bool:
    """Whether its first argument is an embedding network; else it is told what pictures it sees."""
    first = next(iter(inspect.signature(part.make).parameters.values()), None)
    return first is not None and (
        first.name == "embedder" or first.annotation in (nn.Module, "nn.Module", "torch.nn.Module")
    )


def check_embedding_network(name: str) -> None:
    """Complain of an unknown network, or one that is built around another: a method makes it."""
    if name.startswith("hf:"):
        raise ValueError(f"{name} is a network with its weights: use --init {name}")
    if name not in NETWORKS:
        raise NETWORKS.unknown(name, sorted(embedding_networks()))
    if _is_built_around(NETWORKS[name]):  # all others are looked at for the message alone: every config that is read asks
        raise ValueError(
            f"the network {name!r} is built around an embedding network, by its method; an embedding network is "
            f"{', '.join(map(repr, sorted(embedding_networks())))}"
        )


def is_network(name: str, kind: Any) -> bool:
    """Whether networks of a name are of a class or protocol."""
    return name in NETWORKS and inspect.isclass(make := NETWORKS[name].make) and issubclass(make, kind)


def trunk_of(network: nn.Module) -> nn.Module:
    """The network within others that are built around it (`wrapped_network`): what weights to begin with are for."""
    inner = getattr(network, "wrapped_network", None)
    return trunk_of(inner) if isinstance(inner, nn.Module) else network


def embedder_in(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the embedding network, which others are built around."""
    embedder: Mapping[str, Any] = description.get("embedder", description)
    return embedder
