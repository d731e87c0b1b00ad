"""`hf:NAME` and `hf:FOLDER`: a vision model of Hugging Face transformers, made a folder in the cache, once.

Weights are read from safetensors alone, and no code of the model's own is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.cache import made_whole, root_of
from rankshot.files import digest_of, read_whole, write_whole
from rankshot.schema import parsed
from rankshot.tensors import read_tensors, write_tensors
from rankshot.version import FORMAT, __version__

from .folder_files import CARD, CONFIG, WEIGHTS
from .huggingface import (
    HuggingFace,
    as_text,
    check_installed,
    config_of,
    first_line,
    quietly,
    vision_class,
    without_dense_pooler,
)
from .huggingface_processor import pictures_of
from .network import build, describe, trunk_of

PREFIX = "hf:"
NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")  # of a model on the hub
PROCESSOR, PROCESSORS = "preprocessor_config.json", "processor_config.json"
INDEX, PICKLES = "model.safetensors.index.json", ("pytorch_model.bin", "pytorch_model.bin.index.json")
VERSION = 1  # of what is made here: another one makes the folders in the cache anew
SIDE = "vision_model."  # what the weights of the vision side begin with, in models that have several
NOT_USED = "mask_token"  # weights that only the training of transformers' own needs
Find = Callable[[str], Path | None]  # a file of the model, by its name
TERMS = """# {name}, a vision model of Hugging Face transformers

Converted from {name}, {kind}, whose own terms hold. Embeddings of {dimensions} dimensions.
"""


def is_huggingface(run: str | Path) -> bool:
    return str(run).startswith(PREFIX)


def full_huggingface_name(run: str) -> str:
    """By which it is found from anywhere: a folder with its whole path."""
    place = run.removeprefix(PREFIX)
    return f"{PREFIX}{Path(place).expanduser().resolve()}" if _is_folder(place) else run


def without_path(run: str) -> str:
    """What weights, or data, are called where nobody is to know in whose folder they lay."""
    if not is_huggingface(run):
        return Path(run).name
    place = run.removeprefix(PREFIX)
    return f"{PREFIX}{Path(place).name}" if _is_folder(place) else run


def huggingface_folder(run: str) -> Path:
    """The folder of such a network, as `from_pretrained` reads it."""
    check_installed(run)
    place = run.removeprefix(PREFIX)
    is_folder = _is_folder(place)
    if not place:
        raise ValueError(f"{PREFIX} must be followed by the name or the folder of a model, got nothing")
    if is_folder and not Path(place).expanduser().is_dir():
        raise FileNotFoundError(f"there is no folder {place}")
    find = _in_folder(Path(place).expanduser()) if is_folder else _on_hub(place)
    name = Path(place).expanduser().resolve().name if is_folder else place.rpartition("/")[2]
    settings = _config(find, run)
    with quietly():
        config = _named(run, lambda: config_of(settings))
        _named(run, lambda: vision_class(config))
    processor = _processor(find, run)
    weights = _weights(find, run)
    content = json.dumps([VERSION, settings, processor, [_digest(path) for path in weights]], sort_keys=True)
    folder = root_of() / "weights" / hashlib.sha256(content.encode()).hexdigest()[:16] / name
    if not (folder / CONFIG).is_file():
        _make(folder, run, config, processor, weights)
    return folder


def _make(folder: Path, run: str, config: Any, processor: Mapping[str, Any], weights: list[Path]) -> None:
    channels = getattr(config, "num_channels", 3)
    pictures = pictures_of(processor, channels, getattr(config, "image_size", None), f"{run}: {PROCESSOR}")
    settings = {
        "transformers_config": as_text(config),
        "channel_mean": pictures.mean,
        "channel_deviation": pictures.deviation,
        "blue_first": pictures.blue_first,
    }
    description = describe("huggingface", pictures.preprocess, settings)
    network = _named(run, lambda: build(description, pictures.preprocess)).eval()
    trunk = trunk_of(network)
    assert isinstance(trunk, HuggingFace)
    trunk.model.load_state_dict(_loaded(config, weights, run))
    _check_steady(network, pictures.preprocess.shape, run)
    with made_whole(folder) as making:
        write_tensors(making / WEIGHTS, network.state_dict(), {"rankshot": __version__})
        terms = TERMS.format(name=without_path(run), kind=config.model_type, dimensions=network.embedding_dim)
        write_whole(making / CARD, terms)
        about = {"model": description, "preprocess": pictures.preprocess.to_json()}
        write_whole(making / CONFIG, json.dumps({"rankshot": __version__, "format": FORMAT, **about}, indent=1) + "\n")


def _loaded(config: Any, weights: list[Path], run: str) -> dict[str, Tensor]:
    """By transformers, which knows what layers were called in earlier versions, and most of what a side of a model is."""
    stored = {name: tensor for path in weights for name, tensor in read_tensors(path, is_ours=False).items()}
    side = {name.removeprefix(SIDE): tensor for name, tensor in stored.items() if name.startswith(SIDE)}
    wrong: list[str] = []
    for given in filter(None, (stored, side)):
        with quietly():
            kind = vision_class(config)
            try:
                model, found = kind.from_pretrained(None, config=config, state_dict=given, output_loading_info=True)
            except (RuntimeError, ValueError, TypeError) as error:
                raise ValueError(f"{run}: its weights are of another model: {first_line(error)}") from None
        tensors: dict[str, Tensor] = without_dense_pooler(model).float().state_dict()
        missing = [name for name in found["missing_keys"] if name in tensors and not name.endswith(NOT_USED)]
        bad = sorted([*missing, *(str(key[0]) for key in found.get("mismatched_keys", ()))])
        if not bad:
            return tensors
        wrong = wrong or bad
    raise ValueError(f"{run}: its weights are of another model: there is no {min(wrong, default='tensor')!r} that fits")


def _check_steady(network: nn.Module, shape: tuple[int, int, int], run: str) -> None:
    """Some models hide random parts of a picture from themselves, always."""
    images = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        embeddings = [network(images) for _ in range(2)]
    if not bool(embeddings[0].isfinite().all()):
        raise ValueError(f"{run} gives embeddings that are not finite")
    if not torch.equal(*embeddings):
        raise ValueError(f"{run} gives another embedding of the same picture each time: it is no embedding network")


def _config(find: Find, run: str) -> dict[str, Any]:
    path = find(CONFIG)
    if path is None:
        raise FileNotFoundError(f"{run} holds no model of transformers: there is no {CONFIG} in it")
    settings = _read(path)
    if "model_type" not in settings:
        raise ValueError(f"{run} holds no model of transformers: {CONFIG} tells no 'model_type'")
    _check_no_code(settings, CONFIG, run)
    return settings


def _processor(find: Find, run: str) -> dict[str, Any]:
    """How pictures are made ready; of models with several sides it may lie within a larger file."""
    path = find(PROCESSOR)
    settings: Any = _read(path) if path is not None else None
    if settings is None and (path := find(PROCESSORS)) is not None:
        settings = _read(path).get("image_processor")
    if not isinstance(settings, dict):
        raise FileNotFoundError(f"{run} has no {PROCESSOR}: save its image processor there, by processor.save_pretrained")
    _check_no_code(settings, PROCESSOR, run)
    return settings


def _check_no_code(settings: Mapping[str, Any], name: str, run: str) -> None:
    if "auto_map" in settings:
        raise ValueError(f"{run} comes with code of its own (auto_map in {name}), which is not run")


def _weights(find: Find, run: str) -> list[Path]:
    """One file, or several."""
    if (path := find(WEIGHTS)) is not None:
        return [path]
    if (index := find(INDEX)) is not None:
        names = parsed(json.dumps(_read(index).get("weight_map")), dict[str, str], f"{run}: {INDEX}: weight_map").values()
        paths = {name: find(name) for name in sorted(set(names)) if Path(name).name == name}
        if paths.keys() != set(names) or None in paths.values():
            raise FileNotFoundError(f"{run}: some of the files that {INDEX} tells of are not there")
        return [path for path in paths.values() if path is not None]
    if any(find(name) is not None for name in PICKLES):
        raise ValueError(
            f"{run} has its weights as a pickle ({PICKLES[0]}) alone, which is not read: "
            f"save_pretrained of transformers makes {WEIGHTS} of it"
        )
    raise FileNotFoundError(f"{run} has no weights: there is no {WEIGHTS} in it")


def _is_folder(place: str) -> bool:
    return Path(place).expanduser().is_dir() or not NAME.fullmatch(place)


def _in_folder(folder: Path) -> Find:
    # A person has named the folder, and the hub's own are full of links.
    return lambda name: Path(os.path.realpath(folder / name)) if (folder / name).is_file() else None


def _on_hub(name: str) -> Find:
    return lambda file: _fetched(name, file)


@cache  # the hub is asked about every file once in a process
def _fetched(name: str, file: str) -> Path | None:
    """A file of a model on the hub, in the cache of transformers."""
    with quietly():
        from transformers.utils import cached_file

        try:  # the first file tells whether the model can be had at all; others may be missing
            path = cached_file(name, file, _raise_exceptions_for_missing_entries=file == CONFIG)
        except Exception as error:  # of the network, of many kinds
            raise FileNotFoundError(
                f"there is no folder {name} here, and the hub does not give it: {first_line(error)}"
            ) from None
    return None if path is None else Path(os.path.realpath(path))


def _read(path: Path) -> dict[str, Any]:
    settings: dict[str, Any] = parsed(read_whole(path), dict[str, Any], str(path))
    return settings


def _digest(path: Path) -> str:
    """Of a file; computed once in a process, as long as its size and time stay."""
    status = path.stat()
    return _digest_at(path, status.st_size, status.st_mtime_ns)


@cache
def _digest_at(path: Path, size: int, time: int) -> str:
    return digest_of(path) or ""


def _named(run: str, make: Callable[[], Any]) -> Any:
    """What is wrong with a model tells which one."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{run}: {error}") from None
