"""`rankshot data`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from rankshot import data
from rankshot.cache import root_of
from rankshot.data import store
from rankshot.data.sheet import MOST_A_SIDE
from rankshot.limits import whole
from rankshot.terminal import counting, say

from .parsing import NO_DEFAULT, Files, parsed_one_of

Root = Annotated[Path | None, tyro.conf.arg(help="Folder of all prepared data. None: RANKSHOT_DATA, or the cache folder.")]


@dataclass(frozen=True)
class Prepare:
    """Decode a data set once, into one file that is then memory-mapped.

    NAME is glyphs, omniglot, mini-imagenet, cub or cub-retrieval; or the path of your own images: a folder with a folder
    for each class, or with train/ val/ test/ above these, a zip or tar of such, or a csv of path,label[,split].
    """

    name: Annotated[str, tyro.conf.Positional]
    """Name or path."""
    source: Annotated[tuple[Path, ...], tyro.conf.arg(name="from", help_behavior_hint="")] = ()
    """Files and folders that a named data set was downloaded to."""
    size: int | None = None
    """Pixels of a side. None: 28 for omniglot, 84 for mini-imagenet and your own, 64 for cub."""
    grey: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Your own images: grey instead of colour."""
    invert: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Your own images: dark ink on white becomes bright on black."""
    whole: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """cub: whole photographs instead of bounding boxes."""
    seed: int | None = None
    """Your own images without a split: which classes are for training (60 %), validation (20 %) and testing (20 %)."""
    strict: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Stop at the first image that cannot be read, instead of leaving it out."""
    root: Root = None
    load: Files = ()

    def run(self) -> None:
        with counting(Path(self.name).name) as progress:
            folder = data.prepared(
                self.name, self.root, sources=self.source, strict=self.strict, progress=progress, **self._options()
            )
        say(folder, *told_of(store.read_manifest(folder)))
        name = shlex.quote(folder.name if self._options() else self.name)
        say(f"next: rankshot train --data {name}" + (f" --root {shlex.quote(str(self.root))}" if self.root else ""))

    def _options(self) -> dict[str, Any]:
        given = {"size": self.size, "channels": 1 if self.grey else None, "crop": False if self.whole else None}
        given |= {"invert": self.invert or None, "seed": self.seed}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class List:
    """What is prepared, and where."""

    root: Root = None
    load: Files = ()

    def run(self) -> None:
        found = data.all_prepared(self.root)
        for folder in found:
            say(folder, *told_of(store.read_manifest(folder)))
        if not found:
            say(f"nothing is prepared in {root_of(self.root)}")


@dataclass(frozen=True)
class Verify:
    """Read prepared data byte by byte, and compare it with its checksum."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, NO_DEFAULT] = ()
    """Names or paths. None: everything that is prepared."""
    root: Root = None
    load: Files = ()

    def run(self) -> None:
        for folder in [data.prepared(name, self.root) for name in self.names] or data.all_prepared(self.root):
            store.verify(folder)
            say(f"{folder}: as it was prepared")


@dataclass(frozen=True)
class Show:
    """A contact sheet: a row of images for each of some classes."""

    name: Annotated[str, tyro.conf.Positional]
    """Name or path."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Picture to write, such as sheet.png."""
    split: str = "train"
    """Which classes: train, val, test, trainval or all."""
    classes: int = 12
    """How many rows."""
    images: int = 12
    """How many images a row."""
    seed: int = 0
    """Of the choice of classes."""
    root: Root = None
    load: Files = ()

    def run(self) -> None:
        whole("images", self.images, 1, MOST_A_SIDE)  # by the name that it has here
        found = data.load(self.name, self.split, self.root)
        data.contact_sheet(found, self.output, classes=self.classes, per_class=self.images, seed=self.seed)
        say(f"{self.output}: {found}")


COMMANDS: dict[str, Callable[..., Any]] = {"prepare": Prepare, "list": List, "verify": Verify, "show": Show}


def main(arguments: Sequence[str]) -> int:
    options = parsed_one_of(COMMANDS, arguments, "data")
    options.run()
    return 0


def told_of(manifest: dict[str, Any]) -> list[str]:
    """Counts, split by split."""
    size = "x".join(map(str, manifest["shape"]))
    lines = [f"  {manifest['name']}: {manifest['images']} images of {size}, {len(manifest['classes'])} classes"]
    for split in ("train", "val", "test"):
        counts = [entry["images"] for entry in manifest["classes"] if entry["split"] == split]
        if counts:
            each_has = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
            lines.append(f"  {split:5}  {len(counts)} classes with {each_has} images each, {sum(counts)} in all")
    if manifest["skipped"]:
        lines.append(f"  {len(manifest['skipped'])} files were left out; manifest.json lists them")
    return lines
