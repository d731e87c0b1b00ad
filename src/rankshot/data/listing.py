"""What is to be prepared: which files are images of which class of which split. Listing looks at names, never at pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, TypeVar

from rankshot.preprocess import Preprocess

from .decoding import SUFFIXES, Box
from .trees import Tree

Error = TypeVar("Error", bound=Exception)
SPLITS = ("train", "val", "test")


def advised(error: Error, how: str) -> Error:
    """An error that also tells, in lines of its own, what to do."""
    error.add_note(how)
    return error


@dataclass(frozen=True)
class Picture:
    """One image file: which tree it is in, its name there, and the part of it that counts."""

    tree: int
    name: str
    box: Box | None = None


@dataclass(frozen=True)
class ClassListing:
    """The pictures of one class."""

    name: str
    split: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Listing:
    """A data set before it is decoded. Classes come split by split: train, val, test."""

    name: str
    trees: Sequence[Tree]
    classes: Sequence[ClassListing]
    preprocess: Preprocess
    options: Mapping[str, Any] = field(default_factory=dict)  # what else was chosen; told in the manifest

    def __post_init__(self) -> None:
        order = [SPLITS.index(class_listing.split) for class_listing in self.classes]
        if order != sorted(order):
            raise ValueError(f"{self.name}: classes must come split by split")
        if not self.classes:
            raise ValueError(f"{self.name}: there are no classes")
        for class_listing in self.classes:
            if not class_listing.pictures:
                raise ValueError(f"{self.name}: class {class_listing.name!r} has no images")
        splits: dict[str, str] = {}
        for class_listing in self.classes:
            if (other := splits.setdefault(class_listing.name, class_listing.split)) != class_listing.split:
                raise ValueError(
                    f"{self.name}: class {class_listing.name!r} is in two splits, {other!r} and {class_listing.split!r}"
                )
        names = Counter(class_listing.name.casefold() for class_listing in self.classes)
        for class_listing in self.classes:
            if names[class_listing.name.casefold()] > 1:
                alike = [other.name for other in self.classes if other.name.casefold() == class_listing.name.casefold()]
                raise ValueError(f"{self.name}: classes {', '.join(map(repr, alike))} differ by upper and lower case only")


def is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def by_folder(names: Iterable[str]) -> dict[str, list[str]]:
    """Images by the folder that they are in."""
    folders: dict[str, list[str]] = {}
    for name in names:
        if is_image(name):
            folders.setdefault(str(PurePosixPath(name).parent), []).append(name)
    return folders


def split_by_split(classes: Iterable[ClassListing]) -> list[ClassListing]:
    """Train, val, test; within each as they came."""
    return sorted(classes, key=lambda class_listing: SPLITS.index(class_listing.split))
