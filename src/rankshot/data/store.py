"""Prepared data on disk: one file of pixels that is memory-mapped, and a manifest that tells everything else.

images.bin      (n, C, H, W) uint8, class by class, split by split
manifest.json   name, source, shape, classes with their split and counts, what was skipped, checksum, version
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .image_set import ImageSet

FORMAT = 1
IMAGES, MANIFEST = "images.bin", "manifest.json"
PARTS = {"train": ("train",), "val": ("val",), "test": ("test",), "trainval": ("train", "val")}


class NoClasses(ValueError):
    """A split that this data set does not have."""


def write_manifest(folder: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Beside images.bin, when that is complete."""
    manifest = {"format": FORMAT, **content, "sha256": checksum(folder / IMAGES)}
    manifest["own_sha256"] = _own_checksum(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder} has no {MANIFEST}: delete it and prepare it again")
    try:
        manifest = json.loads(path.read_text())
        found = manifest.get("format")
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError):
        raise ValueError(f"{path} is damaged: delete {folder} and prepare it again") from None
    if found == FORMAT and not {"name", "shape", "classes", "images", "skipped", "sha256"} <= manifest.keys():
        raise ValueError(f"{path} is damaged: delete {folder} and prepare it again")
    if found != FORMAT:
        raise ValueError(f"{folder} was prepared in format {found}, and this is {FORMAT}: delete it and prepare it again")
    return dict(manifest)


def open_split(folder: Path, split: str) -> ImageSet:
    """The images of one split, memory-mapped."""
    manifest = read_manifest(folder)
    if split not in PARTS:
        raise ValueError(f"{manifest['name']} has no split {split!r}: use {', '.join(map(repr, PARTS))}")
    classes = manifest["classes"]
    wanted = [each for each in classes if each["split"] in PARTS[split]]
    if not wanted:
        there = sorted({each["split"] for each in classes})
        raise NoClasses(f"{manifest['name']} has no classes in split {split!r}, only in {', '.join(map(repr, there))}")
    first = classes.index(wanted[0])
    start = sum(each["images"] for each in classes[:first])
    counts = [each["images"] for each in wanted]
    images = mapped(folder, manifest)[start : start + sum(counts)]
    labels = np.repeat(np.arange(len(wanted), dtype=np.int64), counts)
    return ImageSet(images, labels, tuple(each["name"] for each in wanted))


def mapped(folder: Path, manifest: Mapping[str, Any]) -> NDArray[np.uint8]:
    shape = (sum(each["images"] for each in manifest["classes"]), *manifest["shape"])
    path = folder / IMAGES
    size = path.stat().st_size if path.exists() else 0
    if size != int(np.prod(shape)):
        raise ValueError(
            f"{path} is cut short: {size} bytes instead of {int(np.prod(shape))}: delete {folder} and prepare it again"
        )
    return np.memmap(path, dtype=np.uint8, mode="r", shape=shape)


def verify(folder: Path) -> dict[str, Any]:
    """Read everything; complain about a single byte that is not as it was written."""
    manifest = read_manifest(folder)
    mapped(folder, manifest)
    for name, found, wanted in (
        (IMAGES, checksum(folder / IMAGES), manifest["sha256"]),
        (MANIFEST, _own_checksum(manifest), manifest.get("own_sha256")),
    ):
        if found != wanted:
            raise ValueError(f"{folder / name} is not as it was prepared: delete {folder} and prepare it again")
    return manifest


def _own_checksum(manifest: Mapping[str, Any]) -> str:
    told = {name: value for name, value in manifest.items() if name != "own_sha256"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
