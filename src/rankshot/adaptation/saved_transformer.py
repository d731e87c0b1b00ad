"""A transformer in a folder: settings and history as JSON, the map as safetensors."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Required, TypedDict

import torch

from rankshot.files import whole_folder, write_whole
from rankshot.schema import Length, read_json
from rankshot.tensors import read_tensors, write_tensors
from rankshot.version import __version__

from .fitted_map import FittedMap

ABOUT, MAP = "transformer.json", "transformer.safetensors"
SIMPLE = (str, int, float, bool, type(None))


class About(TypedDict, total=False):
    """What transformer.json holds."""

    rankshot: str
    settings: Required[dict[str, str | int | float | bool | None]]
    scale: Required[float]
    updates: Required[int]
    history: Required[list[dict[str, float]]]
    held_out: Required[tuple[float | None, float | None]]
    features: Required[Annotated[list[str], Length(10**6)] | None]


class Saved(NamedTuple):
    """What is saved of a transformer.

    settings   of its constructor that a file can hold
    held_out   mean average precision by the map, and by X as it is
    features   names of the columns of X, where it had some
    """

    settings: dict[str, Any]
    map: FittedMap
    updates: int
    history: list[dict[str, float]]
    held_out: tuple[float | None, float | None]
    features: list[str] | None


def save(saved: Saved, folder: str | Path) -> Path:
    """Into a new folder."""
    about = {
        "rankshot": __version__,
        "settings": {name: value for name, value in saved.settings.items() if isinstance(value, SIMPLE)},
        "scale": saved.map.scale,
        "updates": saved.updates,
        "history": saved.history,
        "held_out": saved.held_out,
        "features": saved.features,
    }
    if lost := [name for name, value in saved.settings.items() if not isinstance(value, SIMPLE)]:
        warnings.warn(f"{' and '.join(lost)} cannot be saved: what is opened has the usual value", stacklevel=3)
    arrays = {name: getattr(saved.map, name) for name in ("offset", "weight", "inner", "bias", "outer")}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if array is not None}
    with whole_folder(Path(folder)) as new_folder:
        write_tensors(new_folder / MAP, tensors, {"rankshot": __version__})
        write_whole(new_folder / ABOUT, json.dumps(about, indent=1) + "\n")
    return Path(folder)


def is_saved(folder: Path) -> bool:
    return (folder / ABOUT).is_file()


def opened(folder: str | Path) -> Saved:
    """What `save` has written."""
    path = Path(folder)
    if not is_saved(path):
        raise FileNotFoundError(f"{path} holds no transformer: there is no {ABOUT} in it")
    about: About = read_json(path / ABOUT, About)
    tensors = read_tensors(path / MAP)
    if not {"offset"} <= tensors.keys() <= {"offset", "weight", "inner", "bias", "outer"}:
        raise ValueError(f"{path / MAP} is damaged: it should hold the weights of a map")
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise ValueError(f"{path / MAP} is damaged: {name!r} holds values that are no finite numbers")
    arrays = {name: tensor.double().numpy() for name, tensor in tensors.items()}
    found = FittedMap(**arrays, scale=about["scale"])
    _check_shapes(found, path / MAP)
    return Saved(about["settings"], found, about["updates"], about["history"], about["held_out"], about["features"])


def _check_shapes(found: FittedMap, path: Path) -> None:
    """A file from elsewhere may hold anything."""
    has_hidden = [array is not None for array in (found.inner, found.bias, found.outer)]
    expected: dict[str, tuple[int, ...]] = {"offset": (found.offset.size,)}
    if found.weight is not None:
        expected["weight"] = (len(found.weight), found.offset.size)
    if any(has_hidden) and all(has_hidden) and found.weight is not None and found.bias is not None:
        hidden = found.bias.size
        expected |= {"inner": (hidden, found.offset.size), "bias": (hidden,), "outer": (len(found.weight), hidden)}
    elif any(has_hidden):
        raise ValueError(f"{path} is damaged: a part of its hidden layer is missing")
    for name, shape in expected.items():
        if getattr(found, name).shape != shape or 0 in shape:
            raise ValueError(f"{path} is damaged: {name!r} must be {shape}, got {getattr(found, name).shape}")
