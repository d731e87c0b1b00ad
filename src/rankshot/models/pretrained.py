"""A network in a folder: `config.json` says what it is, `model.safetensors` holds its weights. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.schema import read_json
from rankshot.tensors import read_tensors

from .conv4 import Conv4
from .mirrored import Mirrored
from .shipped import CONFIG as CONFIG
from .shipped import folder_of, or_shipped

WEIGHTS = "model.safetensors"
# What may lie beside: the classes it has learned from, what was measured, thresholds at one example, the model card.
CLASSES, EVALUATION, ONE_SHOT, CARD = "classes.json", "evaluation.json", "one_shot.json", "README.md"
NETWORKS: dict[str, type[nn.Module]] = {"conv4": Conv4}


def build(description: Mapping[str, Any]) -> nn.Module:
    """A network from its description: {"name": "conv4", and what its constructor takes}; "mirror": true for `Mirrored`."""
    options = dict(description)
    name, mirror = options.pop("name", None), options.pop("mirror", False)
    if not isinstance(name, str) or name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}: there is {', '.join(map(repr, NETWORKS))}")
    try:
        network = NETWORKS[name](**options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"a network {name!r} cannot be made: {error}") from None
    network.described = dict(description)  # type: ignore[assignment]  # for who saves it
    return Mirrored(network) if mirror else network


def described_in(folder: Path) -> dict[str, Any]:
    """What network lies in a folder."""
    description = read_json(folder / CONFIG).get("model")
    if not isinstance(description, dict):
        raise ValueError(f"{folder / CONFIG} does not tell what network it is about: there is no object 'model' in it")
    return description


def embedder_in(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the embedding network, which others are built around."""
    embedder: Mapping[str, Any] = description.get("embedder", description)
    return embedder


def images_of(folder: Path) -> dict[str, Any]:
    """What images the network of a folder wants: {"shape": [C, H, W], "invert": whether dark ink becomes bright}.

    Empty where it does not tell.
    """
    images = read_json(folder / CONFIG).get("images", {})
    if not isinstance(images, dict):
        raise ValueError(f"{folder / CONFIG} is damaged: 'images' should be an object")
    return images


def from_pretrained(run: str | Path) -> nn.Module:
    """The network of a run folder, or one that comes with the package by its name, such as "conv4-omniglot".

    Ready to embed: images (B, C, H, W) from 0 to 1 -> (B, D), batch norm by running averages.
    """
    folder = folder_with_network(run)
    if not (folder / WEIGHTS).exists():
        raise FileNotFoundError(f"{folder} holds no network yet: a run keeps its first one at its first validation")
    model = build(described_in(folder))
    fill(model.state_dict(), read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    return model.eval()


def folder_with_network(run: str | Path) -> Path:
    """Of a run, or of weights that come with the package."""
    folder = folder_of(run)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} holds no network: there is no {CONFIG} in it{or_shipped(folder)}")
    return folder


def fill(live: Mapping[str, Tensor], stored: Mapping[str, Tensor], source: Path) -> None:
    """Copy every stored tensor into the live one of its name, in place; complain before touching any."""
    if missing := sorted(live.keys() - stored.keys()):
        raise ValueError(f"{source} is of another model: it has no {missing[0]!r}")
    if unknown := sorted(stored.keys() - live.keys()):
        raise ValueError(f"{source} is of another model: it has {unknown[0]!r}, which is not expected")
    for name, each in live.items():
        if stored[name].shape != each.shape:
            wanted, got = tuple(each.shape), tuple(stored[name].shape)
            raise ValueError(f"{source} is of another model: {name!r} should be {wanted}, got {got}")
    with torch.no_grad():
        for name, each in live.items():
            each.copy_(stored[name])
