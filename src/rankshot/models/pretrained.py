"""A network in a folder: `config.json` says what it is, `model.safetensors` holds its weights. Nothing is unpickled."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from rankshot.preprocess import Preprocess
from rankshot.schema import read_json
from rankshot.tensors import read_tensors
from rankshot.version import check_format

from .folder_files import CONFIG, WEIGHTS
from .huggingface_folder import PREFIX
from .network import (
    NETWORKS,
    Description,
    assemble,
    build,
    embedder_in,
    is_wrapped,
    preprocess_of,
    usual_preprocess,
    wrap,
)
from .shipped import folder_of, or_shipped


class FormerImages(TypedDict, total=False):
    """What earlier versions told of the images that a network wants: (C, H, W), and whether dark ink becomes bright."""

    shape: tuple[int, int, int]
    invert: bool


class Config(TypedDict, total=False):
    """config.json, as far as a network is concerned; the settings of its training may lie beside."""

    format: int
    model: Description
    preprocess: Preprocess
    images: FormerImages
    data: Any
    init: Any


def read_config(folder: Path) -> Config:
    """What a folder tells about its network, checked."""
    config: Config = read_json(folder / CONFIG, Config)
    try:
        check_format(config.get("format", 1))
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG}: {error}") from None
    return config


def described_in(folder: Path) -> dict[str, Any]:
    """What network lies in a folder."""
    description = read_config(folder).get("model")
    if description is None:
        hint = (
            f": a model of transformers is opened by {PREFIX}{folder}" if "model_type" in read_json(folder / CONFIG) else ""
        )
        raise ValueError(
            f"{folder / CONFIG} does not tell what network it is about: there is no object 'model' in it{hint}"
        )
    return dict(description)


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


def from_pretrained(run: str | Path, network: nn.Module | None = None) -> nn.Module:
    """Open an embedding network: shipped weights by name, a run folder, or a vision model of Hugging Face.

    The network is ready to embed: images (B, C, H, W) from 0 to 1 -> (B, D), batch norm by running averages. Weights are
    read from safetensors; nothing is unpickled.

    Args:
        run: a name of `models.shipped()`, such as "conv4-omniglot"; the folder of a run or of `save_pretrained`; ImageNet
            weights, "efficientnet-lite0" to "efficientnet-lite2"; or "hf:NAME" or "hf:FOLDER" for a model of
            transformers.
        network: a network of one's own, or its class, which the weights are for. One that is registered is not needed.

    Returns:
        The network, in eval mode, with `embedding_dim` and `preprocess`.

    Raises:
        FileNotFoundError: if there is no such folder or name, or it holds no network yet.
        ValueError: if the weights are damaged, or of another network.

    Examples:
        >>> import torch
        >>> import rankshot
        >>> network = rankshot.from_pretrained("conv4-omniglot")
        >>> print(network.preprocess)
        28x28 grey, dark ink made bright
        >>> network(torch.zeros(2, *network.preprocess.shape)).shape
        torch.Size([2, 64])
    """
    folder = folder_with_network(run)
    if inspect.isclass(network):
        network = network()
    if not (folder / WEIGHTS).exists():
        raise FileNotFoundError(f"{folder} holds no network yet: a run keeps its first one at its first validation")
    description, stored = described_in(folder), read_tensors(folder / WEIGHTS)
    if network is not None:
        return _filled_own(network, description, stored, folder)
    preprocess = preprocess_in(folder) or usual_preprocess(description)
    check_known(description, folder)
    if is_ours(description):  # other people's constructors may look at numbers
        with torch.device("meta"):  # takes no memory: a description may promise more than the weights hold
            check_fits(assemble(description, preprocess).state_dict(), stored, folder / WEIGHTS)
    model = build(description, preprocess)
    fill(model.state_dict(), stored, folder / WEIGHTS)
    return model.eval()


def _filled_own(
    network: nn.Module, description: Mapping[str, Any], stored: Mapping[str, Tensor], folder: Path
) -> nn.Module:
    """A network that was given, with the weights of a folder."""
    preprocess, name = preprocess_in(folder) or usual_preprocess(description), str(description["name"])
    if name in NETWORKS and not is_wrapped(network):
        raise ValueError(f"{folder} holds a network {name!r}, which is made without help: leave the network out")
    wrapped = network if is_wrapped(network) else wrap(network, preprocess=preprocess, name=name)
    if preprocess_of(wrapped) != preprocess:
        raise ValueError(f"{folder} wants pictures {preprocess}, and the network that is given {preprocess_of(wrapped)}")
    try:
        fill(wrapped.state_dict(), stored, folder / WEIGHTS)
    except ValueError as error:
        raise ValueError(f"{folder} holds a network {name!r}, and {type(network).__name__} is given: {error}") from None
    wrapped.description = dict(description)  # type: ignore[assignment]
    return wrapped.eval()


def is_ours(description: Mapping[str, Any]) -> bool:
    """Whether a network and what it is built around are of this package."""
    names = (description["name"], embedder_in(description)["name"])
    return all(NETWORKS[name].is_ours for name in names)


def check_known(description: Mapping[str, Any], folder: Path) -> None:
    """A folder can never make anybody import code: a network of somebody's own is given, or loaded, by who opens it."""
    for part in (description, embedder_in(description)):
        if part["name"] not in NETWORKS:
            known = ", ".join(map(repr, NETWORKS))
            raise ValueError(
                f"{folder} holds a network {part['name']!r}, and there is {known}: load the file that registers it "
                "(--load FILE, or rankshot.load_files), or give the network to from_pretrained(folder, network=…)"
            )


def folder_with_network(run: str | Path) -> Path:
    """Of a run, or of weights that come with the package."""
    folder = folder_of(run)
    if not (folder / CONFIG).is_file():
        what = f"there is no {CONFIG} in it" if folder.exists() else "there is no such folder"
        raise FileNotFoundError(f"{folder} holds no network: {what}{or_shipped(folder)}")
    return folder


def fill(live: Mapping[str, Tensor], stored: Mapping[str, Tensor], source: Path) -> None:
    """Copy every stored tensor into the live one of its name, in place; complain before touching any."""
    check_fits(live, stored, source)
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(stored[name])


def check_fits(live: Mapping[str, Tensor], stored: Mapping[str, Tensor], source: Path) -> None:
    """The same names and shapes, and numbers that are numbers."""
    if missing := sorted(live.keys() - stored.keys()):
        raise ValueError(f"{source} is of another model: it has no {missing[0]!r}")
    if unknown := sorted(stored.keys() - live.keys()):
        raise ValueError(f"{source} is of another model: it has {unknown[0]!r}, which is not expected")
    for name, tensor in live.items():
        if stored[name].shape != tensor.shape:
            expected, got = tuple(tensor.shape), tuple(stored[name].shape)
            raise ValueError(f"{source} is of another model: {name!r} must be {expected}, got {got}")
        if stored[name].is_complex() or not bool(stored[name].isfinite().all()):
            raise ValueError(f"{source} is damaged: {name!r} holds values that are no finite numbers")
