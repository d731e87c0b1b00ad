"""Networks into folders that `from_pretrained` opens, to be passed on."""

from __future__ import annotations

import copy
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

from .folder_files import CONFIG, WEIGHTS
from .huggingface_folder import without_path
from .pretrained import preprocess_in, read_config

MOST_WEIGHTS = 2**34  # bytes
# Settings that are perhaps paths of somebody's machine, of which the last part is kept; and others that say where a network
# was made, with what they become. Within their sections, and by themselves as earlier versions told them.
PATHS = (("data",), ("init",), ("data", "name"), ("network", "init"))
HERE = {("root",): None, ("device",): "auto", ("data", "root"): None, ("run", "device"): "auto"}


def save_pretrained(network: nn.Module, folder: str | Path, preprocess: Preprocess | None = None) -> Path:
    """Save a network into a new folder that `from_pretrained` opens: `config.json` and `model.safetensors`.

    Args:
        network: one of rankshot's, or a wrapped one (`rankshot.wrap`).
        folder: to make; it must be new or empty.
        preprocess: what pictures it takes, for `Embedder` and `rankshot classify`. None: what the network itself tells.

    Returns:
        The folder.

    Raises:
        FileExistsError: if there is something in the folder.
        ValueError: if the network does not tell what it is, or takes images of other channels than `preprocess`.

    Examples:
        >>> import torch
        >>> import rankshot
        >>> network = rankshot.wrap(rankshot.models.Conv4(filters=8), preprocess=rankshot.Preprocess(1, 28, 28))
        >>> folder = rankshot.save_pretrained(network.eval(), "my-network")
        >>> sorted(path.name for path in folder.iterdir())
        ['config.json', 'model.safetensors']
        >>> images = torch.rand(2, 1, 28, 28)
        >>> torch.equal(rankshot.from_pretrained("my-network")(images), network(images))
        True
    """
    config: dict[str, Any] = {"rankshot": __version__, "model": description_of(network)}
    preprocess = preprocess or getattr(network, "preprocess", None)
    if preprocess is not None:
        check_channels(network, preprocess)
        config["preprocess"] = preprocess.to_json()
    with whole_folder(Path(folder)) as new_folder:
        write_tensors(new_folder / WEIGHTS, network.state_dict(), {"rankshot": __version__})
        _write_config(new_folder, config)
    return Path(folder)


def check_channels(network: nn.Module, preprocess: Preprocess) -> None:
    """A network that cannot see such images is not said to."""
    check_preprocess(preprocess)
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    if first is not None and first.in_channels != preprocess.channels:
        raise ValueError(f"this network sees images of {first.in_channels} channels, got {preprocess.channels}")


def copy_pretrained(source: Path, folder: str | Path, also: Sequence[str], preprocess: Preprocess | None = None) -> Path:
    """What a user needs of a run into a new folder: the network, and those of the other files that are there.

    preprocess   how pictures are made ready, in place of what the run tells
    """
    settings = without_places(read_config(source))
    if preprocess := preprocess or preprocess_in(source):
        settings["preprocess"] = preprocess.to_json()
    settings.pop("images", None)  # how earlier versions told
    with whole_folder(Path(folder)) as new_folder:
        for name in (WEIGHTS, *also):
            if name == WEIGHTS or (source / name).is_file():
                write_whole(new_folder / name, read_whole(source / name, MOST_WEIGHTS if name == WEIGHTS else MOST_JSON))
        _write_config(new_folder, settings)
    return Path(folder)


def without_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, without where things lie on somebody's machine."""
    cleaned: dict[str, Any] = copy.deepcopy(dict(settings))
    for *parts, name in (*HERE, *PATHS):
        within = cleaned
        for part in parts:
            within = within[part] if isinstance(within.get(part), dict) else {}
        key_path = (*parts, name)
        if key_path in HERE and name in within:
            within[name] = HERE[key_path]
        elif isinstance(within.get(name), str) and within[name]:
            within[name] = without_path(within[name])
    return cleaned


def description_of(network: nn.Module) -> dict[str, Any]:
    """What it is told by: see `network.build`."""
    description = getattr(network, "description", None)
    if not isinstance(description, Mapping):
        raise ValueError(
            f"{type(network).__name__} does not tell what it is: rankshot.wrap(network, preprocess=Preprocess(…)) makes a "
            "network of one's own known"
        )
    return dict(description)


def _write_config(folder: Path, content: Mapping[str, Any]) -> None:
    """Last, since it makes the folder one that can be opened."""
    write_whole(folder / CONFIG, json.dumps(content, indent=1) + "\n")
