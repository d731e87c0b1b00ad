"""Networks into folders that `from_pretrained` opens, to be passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from rankshot.files import read_whole, whole_folder, write_whole
from rankshot.preprocess import Preprocess, check_preprocess
from rankshot.schema import MOST_JSON
from rankshot.tensors import write_tensors
from rankshot.version import __version__

from .conv4 import Conv4
from .mirrored import Mirrored
from .pretrained import CONFIG, WEIGHTS, preprocess_in, read_config

MOST_WEIGHTS = 2**34  # bytes
PLACES = ("data", "init")  # perhaps paths of somebody's machine, of which the last part is kept
HERE = {"root": None, "device": "auto"}  # settings that say where a network was made, and what they become


def save_pretrained(network: nn.Module, folder: str | Path, preprocess: Preprocess | None = None) -> Path:
    """A network of rankshot's into a new folder: what it is, and its weights.

    preprocess   how pictures are made ready for it, which `Embedder` and `rankshot classify` then know
    """
    about: dict[str, Any] = {"rankshot": __version__, "model": description_of(network)}
    if preprocess is not None:
        check_channels(network, preprocess)
        about["preprocess"] = preprocess.to_json()
    with whole_folder(Path(folder)) as place:
        write_tensors(place / WEIGHTS, network.state_dict(), {"rankshot": __version__})
        _write_config(place, about)
    return Path(folder)


def check_channels(network: nn.Module, preprocess: Preprocess) -> None:
    """A network that cannot see such images is not said to."""
    check_preprocess(preprocess)
    weight = next((each for each in network.state_dict().values() if each.dim() == 4), None)
    if weight is not None and weight.shape[1] != preprocess.channels:
        raise ValueError(f"this network sees images of {weight.shape[1]} channels, got {preprocess.channels}")


def copy_pretrained(source: Path, folder: str | Path, also: Sequence[str], preprocess: Preprocess | None = None) -> Path:
    """What a user needs of a run into a new folder: the network, and those of the other files that are there.

    preprocess   how pictures are made ready, in place of what the run tells
    """
    settings = without_places(read_config(source))
    if preprocess := preprocess or preprocess_in(source):
        settings["preprocess"] = preprocess.to_json()
    settings.pop("images", None)  # how earlier versions told
    with whole_folder(Path(folder)) as place:
        for each in (WEIGHTS, *also):
            if each == WEIGHTS or (source / each).is_file():
                write_whole(place / each, read_whole(source / each, MOST_WEIGHTS if each == WEIGHTS else MOST_JSON))
        _write_config(place, settings)
    return Path(folder)


def without_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, without where things lie on somebody's machine."""
    here = {name: value for name, value in HERE.items() if name in settings}
    return {**settings, **here, **{name: Path(settings[name]).name for name in PLACES if settings.get(name)}}


def description_of(network: nn.Module) -> dict[str, Any]:
    """What `build` makes such a network from."""
    if isinstance(network, Mirrored):
        return {**description_of(network.network), "mirror": True}
    if isinstance(network, Conv4):
        weight = network.state_dict()["0.0.weight"]
        return {"name": "conv4", "in_channels": weight.shape[1], "filters": weight.shape[0]}
    told = getattr(network, "described", None)
    if not isinstance(told, Mapping):
        raise ValueError(
            f"{type(network).__name__} is no network that rankshot can build again: keep it in your own way, or export it"
        )
    return dict(told)


def _write_config(place: Path, content: Mapping[str, Any]) -> None:
    """Last, since it makes the folder one that can be opened."""
    write_whole(place / CONFIG, json.dumps(content, indent=1) + "\n")
