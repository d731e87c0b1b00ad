"""A network in a folder: `config.json` says what it is, `model.safetensors` holds its weights. Nothing is unpickled."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict

import torch
from torch import Tensor, nn

from rankshot.preprocess import Preprocess
from rankshot.schema import Between, Length, checked, read_json
from rankshot.tensors import read_tensors

from .conv4 import Conv4
from .mirrored import Mirrored
from .shipped import CONFIG as CONFIG
from .shipped import folder_of, or_shipped

WEIGHTS = "model.safetensors"
# What may lie beside: the classes it has learned from, what was measured, thresholds at one example, the model card.
CLASSES, EVALUATION, ONE_SHOT, CARD = "classes.json", "evaluation.json", "one_shot.json", "README.md"
NETWORKS: dict[str, type[nn.Module]] = {"conv4": Conv4}
SYSTEMS = "rankshot.methods"  # whose networks are known once it is imported
# What a network's constructor may be given by a file from elsewhere, by the hints of its arguments.
OPTIONS: dict[Any, Any] = {
    int: Annotated[int, Between(1, 2**14)],
    float: Annotated[float, Between(-1e9, 1e9)],
    str: Annotated[str, Length(1000)],
    bool: bool,
}


class Network(TypedDict, total=False):
    """What is built: a network by its name and the options of its constructor, perhaps around an embedding network."""

    name: Required[Annotated[str, Length(100)]]
    mirror: bool
    embedder: Network


class Images(TypedDict, total=False):
    """What earlier versions told of the images that a network wants: (C, H, W), and whether dark ink becomes bright."""

    shape: tuple[int, int, int]
    invert: bool


class Config(TypedDict, total=False):
    """config.json, as far as a network is concerned; the settings of its training may lie beside."""

    model: Network
    preprocess: Preprocess
    images: Images
    data: str
    init: str | None


def read_config(folder: Path) -> Config:
    """What a folder tells about its network, checked."""
    found: Config = read_json(folder / CONFIG, Config)
    return found


def build(description: Mapping[str, Any]) -> nn.Module:
    """A network from its description: {"name": "conv4", and what its constructor takes}; "mirror": true for `Mirrored`."""
    options: dict[str, Any] = checked(dict(description), Network, "the description of a network")
    name, mirror = options.pop("name"), options.pop("mirror", False)
    if name not in NETWORKS:
        import_module(SYSTEMS)
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}: there is {', '.join(map(repr, NETWORKS))}")
    hints = typing.get_type_hints(NETWORKS[name].__init__)
    for option in options.keys() & hints.keys():
        options[option] = checked(options[option], OPTIONS.get(hints[option], Any), f"{option} of a network {name!r}")
    try:
        network = NETWORKS[name](**options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"a network {name!r} cannot be made: {error}") from None
    network.described = dict(description)  # type: ignore[assignment]  # for who saves it
    return Mirrored(network) if mirror else network


def described_in(folder: Path) -> dict[str, Any]:
    """What network lies in a folder."""
    description = read_config(folder).get("model")
    if description is None:
        raise ValueError(f"{folder / CONFIG} does not tell what network it is about: there is no object 'model' in it")
    return dict(description)


def embedder_in(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the embedding network, which others are built around."""
    embedder: Mapping[str, Any] = description.get("embedder", description)
    return embedder


def preprocess_in(folder: Path) -> Preprocess | None:
    """How pictures are made ready for the network of a folder, where it tells."""
    config = read_config(folder)
    images = config.get("images", {})
    if "preprocess" in config or "shape" not in images:
        return config.get("preprocess")
    try:
        return Preprocess(*images["shape"], invert=images.get("invert", False))
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG}: {error}") from None


def from_pretrained(run: str | Path) -> nn.Module:
    """The network of a run folder, or one that comes with the package by its name, such as "conv4-omniglot".

    Ready to embed: images (B, C, H, W) from 0 to 1 -> (B, D), batch norm by running averages.
    """
    folder = folder_with_network(run)
    if not (folder / WEIGHTS).exists():
        raise FileNotFoundError(f"{folder} holds no network yet: a run keeps its first one at its first validation")
    description, stored = described_in(folder), read_tensors(folder / WEIGHTS)
    with torch.device("meta"):  # takes no memory: a description may promise more than the weights hold
        check_fits(build(description).state_dict(), stored, folder / WEIGHTS)
    model = build(description)
    fill(model.state_dict(), stored, folder / WEIGHTS)
    return model.eval()


def folder_with_network(run: str | Path) -> Path:
    """Of a run, or of weights that come with the package."""
    folder = folder_of(run)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} holds no network: there is no {CONFIG} in it{or_shipped(folder)}")
    return folder


def fill(live: Mapping[str, Tensor], stored: Mapping[str, Tensor], source: Path) -> None:
    """Copy every stored tensor into the live one of its name, in place; complain before touching any."""
    check_fits(live, stored, source)
    with torch.no_grad():
        for name, each in live.items():
            each.copy_(stored[name])


def check_fits(live: Mapping[str, Tensor], stored: Mapping[str, Tensor], source: Path) -> None:
    """The same names and shapes, and numbers that are numbers."""
    if missing := sorted(live.keys() - stored.keys()):
        raise ValueError(f"{source} is of another model: it has no {missing[0]!r}")
    if unknown := sorted(stored.keys() - live.keys()):
        raise ValueError(f"{source} is of another model: it has {unknown[0]!r}, which is not expected")
    for name, each in live.items():
        if stored[name].shape != each.shape:
            wanted, got = tuple(each.shape), tuple(stored[name].shape)
            raise ValueError(f"{source} is of another model: {name!r} should be {wanted}, got {got}")
        if stored[name].is_complex() or not bool(stored[name].isfinite().all()):
            raise ValueError(f"{source} is damaged: {name!r} holds values that are no finite numbers")
