"""Prepared data on disk: one file of pixels that is memory-mapped, and a manifest that tells everything else.

images.bin      (n, C, H, W) uint8, class by class, split by split
checked.json    size and time of images.bin when it was last compared with its checksum
manifest.json   name, source, shape, classes with their split and counts, what was skipped, checksum, version
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from rankshot.cache import root_of
from rankshot.files import check_no_link, digest_of, opened, write_whole
from rankshot.preprocess import Preprocess, Side
from rankshot.schema import Between, Length, checked, read_json

from .image_set import ImageSet
from .listing import SPLITS

FORMAT = 1
IMAGES, MANIFEST, STAMP = "images.bin", "manifest.json", "checked.json"
PARTS = {"train": ("train",), "val": ("val",), "test": ("test",), "trainval": ("train", "val"), "all": SPLITS}


class ClassEntry(TypedDict):
    """One class of the manifest."""

    name: Annotated[str, Length(10_000)]
    split: Literal["train", "val", "test"]
    images: Annotated[int, Between(0, 2**40)]


class Skipped(TypedDict):
    """A file that was left out."""

    file: str
    why: str


class Manifest(TypedDict, total=False):
    """What manifest.json holds; there may be more."""

    format: Required[int]
    name: Required[str]
    source: list[str]
    shape: Required[tuple[Annotated[int, Between(1, 16)], Side, Side]]
    invert: bool
    preprocess: dict[str, Any]
    options: dict[str, Any]
    images: Required[Annotated[int, Between(0, 2**40)]]
    classes: Required[list[ClassEntry]]
    skipped: Required[list[Skipped]]
    sha256: Required[Annotated[str, Length(64)]]
    own_sha256: str


class Stamp(TypedDict):
    """Pixels that were compared with their checksum, and how their file looked then."""

    size: int
    time: int
    sha256: str


CHECKED: dict[Path, Stamp] = {}  # by folder: the pixels that were compared in this process


class NoClasses(ValueError):
    """A split that this data set does not have."""


def write_manifest(folder: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Beside images.bin, when that is complete."""
    manifest = {"format": FORMAT, **content, "sha256": checksum(folder / IMAGES)}
    manifest["own_sha256"] = _own_checksum(manifest)
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    _remember(folder, manifest["sha256"])
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder} has no {MANIFEST}: delete it and prepare it again")
    try:
        version = read_json(path).get("format")
        if version == FORMAT:
            manifest = checked(read_json(path), Manifest, str(path))
            _check_counts(manifest)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: delete {folder} and prepare it again ({error})") from None
    if version != FORMAT:
        raise ValueError(f"{folder} was prepared in format {version}, and this is {FORMAT}: delete it and prepare it again")
    if manifest.get("own_sha256") not in (None, _own_checksum(manifest)):
        raise ValueError(f"{path} is not as it was prepared: delete {folder} and prepare it again")
    return dict(manifest)


def preprocess_in(manifest: Mapping[str, Any]) -> Preprocess:
    """How the pictures were made ready; manifests of earlier versions tell the shape, and perhaps the ink."""
    if "preprocess" in manifest:
        preprocess: Preprocess = checked(
            manifest["preprocess"], Preprocess, f"the manifest of {manifest['name']}: preprocess"
        )
        return preprocess
    channels, height, width = manifest["shape"]
    return Preprocess(channels, height, width, invert=manifest.get("invert", manifest["name"] in ("glyphs", "omniglot")))


def _check_counts(manifest: Mapping[str, Any]) -> None:
    """What it tells must agree with itself."""
    if sum(entry["images"] for entry in manifest["classes"]) != manifest["images"]:
        raise ValueError(f"its classes have not {manifest['images']} images together")
    order = [SPLITS.index(entry["split"]) for entry in manifest["classes"]]
    if order != sorted(order):
        raise ValueError("its classes do not come split by split")


def open_split(folder: Path, split: str) -> ImageSet:
    """The images of one split, memory-mapped."""
    manifest = read_manifest(folder)
    if split not in PARTS:
        raise ValueError(f"{manifest['name']} has no split {split!r}: use {', '.join(map(repr, PARTS))}")
    classes = manifest["classes"]
    chosen = [entry for entry in classes if entry["split"] in PARTS[split]]
    if not chosen:
        splits = sorted({entry["split"] for entry in classes})
        raise NoClasses(f"{manifest['name']} has no classes in split {split!r}, only in {', '.join(map(repr, splits))}")
    first = classes.index(chosen[0])
    start = sum(entry["images"] for entry in classes[:first])
    counts = [entry["images"] for entry in chosen]
    images = mapped(folder, manifest)[start : start + sum(counts)]
    check_once(folder, manifest)
    labels = np.repeat(np.arange(len(chosen), dtype=np.int64), counts)
    return ImageSet(images, labels, tuple(entry["name"] for entry in chosen))


def mapped(folder: Path, manifest: Mapping[str, Any]) -> NDArray[np.uint8]:
    shape = (sum(entry["images"] for entry in manifest["classes"]), *manifest["shape"])
    path = folder / IMAGES
    check_no_link(path)
    size = path.stat().st_size if path.exists() else 0
    if size != int(np.prod(shape)):
        raise ValueError(
            f"{path} is cut short: {size} bytes instead of {int(np.prod(shape))}: delete {folder} and prepare it again"
        )
    with opened(path) as file:
        return np.memmap(file, dtype=np.uint8, mode="r", shape=shape)


def check_once(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compare the pixels with their checksum: once, as long as the size and the time of their file stay."""
    stamp = _stamp(folder, manifest["sha256"])
    if CHECKED.get(folder.resolve()) == stamp or _remembered(folder) == stamp:
        return
    if checksum(folder / IMAGES) != manifest["sha256"]:
        raise ValueError(f"{folder / IMAGES} is not as it was prepared: delete {folder} and prepare it again")
    CHECKED[folder.resolve()] = stamp
    if folder.resolve().is_relative_to(root_of().resolve()):  # others' folders are compared once in each process
        with suppress(OSError):
            _remember(folder, manifest["sha256"])


def _stamp(folder: Path, digest: str) -> Stamp:
    status = (folder / IMAGES).stat()
    return {"size": status.st_size, "time": status.st_mtime_ns, "sha256": digest}


def _remember(folder: Path, digest: str) -> None:
    write_whole(folder / STAMP, json.dumps(_stamp(folder, digest)) + "\n")


def _remembered(folder: Path) -> Stamp | None:
    try:
        stamp: Stamp = read_json(folder / STAMP, Stamp)
    except (OSError, ValueError):
        return None
    return stamp


def verify(folder: Path) -> dict[str, Any]:
    """Read everything; complain about a single byte that is not as it was written."""
    manifest = read_manifest(folder)
    mapped(folder, manifest)
    if checksum(folder / IMAGES) != manifest["sha256"]:
        raise ValueError(f"{folder / IMAGES} is not as it was prepared: delete {folder} and prepare it again")
    return manifest


def _own_checksum(manifest: Mapping[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != "own_sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    return digest_of(path) or ""
