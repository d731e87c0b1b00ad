"""Data sets of one's own that are made by a function: registered by name, prepared once, then as good as any other."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from rankshot.cache import made_whole
from rankshot.files import digest_of
from rankshot.registry import Part, Registry

from .image_set import ImageSet
from .listing import SPLITS
from .store import IMAGES, write_manifest

log = logging.getLogger(__name__)

# A function of typed settings -> {"train": ImageSet, "val": ImageSet, "test": ImageSet}; all splits are of other classes.
DATA_SETS = Registry("data set", about={})
register = DATA_SETS.register


def folder_in(root: Path, name: str, settings: Mapping[str, Any]) -> Path:
    """Where it lies below a root: made by other code, or with other settings, it would lie elsewhere."""
    part = DATA_SETS[name]
    changed = [f"{key}{value}" for key, value in sorted(settings.items()) if value != part.defaults[key]]
    folder_name = "-".join([name, *changed, _digest_of_code(part)[:8]])
    if Path(folder_name).name != folder_name:
        raise ValueError(f"the name and the settings of a data set become that of a folder, got {folder_name!r}")
    return root / folder_name


def _digest_of_code(part: Part) -> str:
    """Of the file that it is in; in a notebook or a console, of the function alone."""
    if Path(part.file).is_file():
        return digest_of(Path(part.file)) or ""
    try:
        code = inspect.getsource(part.make)
    except (OSError, TypeError):  # nobody has kept what was typed
        made_by: Any = inspect.unwrap(part.make)
        code = repr((_content(made_by.__init__ if inspect.isclass(made_by) else made_by), part.defaults))
    return hashlib.sha256(code.encode()).hexdigest()


def _content(function: Any) -> Any:
    """What a function does, by its compiled code: the same in every process."""
    code = getattr(function, "__code__", function)
    if isinstance(code, frozenset):  # a set in the code, whose order is another in every process
        return sorted(map(repr, code))
    if not isinstance(code, CodeType):
        return code
    return code.co_code.hex(), code.co_names, [_content(constant) for constant in code.co_consts]


def prepare(name: str, root: Path, settings: Mapping[str, Any]) -> Path:
    """The folder of the prepared data set, which its function is called for the first time."""
    chosen = DATA_SETS.choose(name, settings)
    folder = folder_in(root, name, chosen.settings)
    if not folder.is_dir():
        log.info("making the data set %s, once, into %s", name, folder)
        splits = _checked(DATA_SETS.make(chosen), DATA_SETS[name])
        with made_whole(folder) as making:
            _write(making, name, splits, chosen.settings)
    return folder


def _checked(splits: Any, part: Part) -> dict[str, ImageSet]:
    if (
        not isinstance(splits, Mapping)
        or not splits
        or not all(isinstance(image_set, ImageSet) for image_set in splits.values())
    ):
        raise ValueError(f"the data set {part.name!r} of {part.file} must be a dictionary of split -> ImageSet")
    for split in splits.keys() - set(SPLITS):
        raise ValueError(f"the data set {part.name!r} has a split {split!r}: there is {', '.join(map(repr, SPLITS))}")
    if len({image_set.images.shape[1:] for image_set in splits.values()}) > 1:
        raise ValueError(f"the images of the data set {part.name!r} are not of one size in all splits")
    names = [name for image_set in splits.values() for name in image_set.classes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the data set {part.name!r} has a class {twice!r} twice: a split must be of other classes")
    return {split: splits[split] for split in SPLITS if split in splits}


def _write(folder: Path, name: str, splits: Mapping[str, ImageSet], settings: Mapping[str, Any]) -> None:
    classes = []
    with (folder / IMAGES).open("wb") as file:
        for split, images in splits.items():
            order = np.argsort(images.labels, kind="stable")  # class by class
            for at in order:
                file.write(np.ascontiguousarray(images.images[at]).tobytes())
            counts = np.bincount(images.labels, minlength=len(images.classes)).tolist()
            classes += [
                {"name": class_name, "split": split, "images": count}
                for class_name, count in zip(images.classes, counts, strict=True)
                if count
            ]
    shape = next(iter(splits.values())).images.shape[1:]
    content = {"name": name, "source": [DATA_SETS[name].file], "shape": list(shape), "options": dict(settings)}
    total = sum(entry["images"] for entry in classes)
    write_manifest(folder, {**content, "images": total, "classes": classes, "skipped": []})
