"""Anyone's own images: root/class/*.jpg, or root/{train,val,test}/class/*.jpg, or a csv of path,label[,split]."""

from __future__ import annotations

import csv
import io
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import torch

from rankshot.files import text_of
from rankshot.preprocess import Fit, Interpolation, Preprocess
from rankshot.randomness import generator_for

from .listing import SPLITS, ClassListing, Listing, Picture, by_folder, is_image, split_by_split
from .trees import Tree, open_tree

log = logging.getLogger(__name__)

SIZE = 84
SHARES = (0.6, 0.2, 0.2)  # of the classes, for train, val and test, where no split is given
LIKE_SPLITS = (*SPLITS, "valid", "validation", "training", "testing", "dev", "evaluation")
FEW = 2  # a class needs that many images to be ranked at all


def listing(
    path: Path,
    size: int | tuple[int, int] = SIZE,
    channels: int = 3,
    seed: int = 0,
    invert: bool = False,
    fit: Fit = "stretch",
    interpolation: Interpolation = "bicubic",
) -> Listing:
    """What lies in a folder, a zip or a tar file, or what a csv tells. The size is of both sides, or height and width."""
    height, width = (size, size) if isinstance(size, int) else size
    preprocess = Preprocess(channels, height, width, fit, interpolation, invert=invert)
    options: dict[str, object] = {"size": size, "channels": channels, "seed": seed}
    if path.suffix.lower() == ".csv":
        tree, classes = open_tree(path.parent), _from_csv(path)
    else:
        tree = open_tree(path)
        classes = _from_folders(tree)
    if all(not class_listing.split for class_listing in classes):
        classes = _split(classes, seed)
        options["split"] = f"by seed, {' : '.join(map(str, SHARES))}"
    for class_listing in classes:
        if len(class_listing.pictures) < FEW:
            log.warning("class %r has a single image: it has no other of its class to rank", class_listing.name)
    return Listing(path.stem, [tree], split_by_split(classes), preprocess, options)


def _from_folders(tree: Tree) -> list[ClassListing]:
    folders = by_folder(tree.names())
    if not folders:
        raise ValueError(
            f"{tree.path} holds no images; expected are folders with one class each, such as cat/1.jpg, dog/1.jpg"
        )
    if "." in folders:
        raise ValueError(f"{tree.path}: {folders['.'][0]} lies in no class; put the images of each class into a folder")
    parts = [PurePosixPath(folder).parts for folder in folders]
    common = 0
    # An archive often holds one folder that holds everything.
    while all(len(levels) > common + 1 and levels[common] == parts[0][common] not in SPLITS for levels in parts):
        common += 1
    by_split = all(levels[common] in SPLITS and len(levels) > common + 1 for levels in parts)
    like_splits = sorted({levels[common] for levels in parts if levels[common].lower() in LIKE_SPLITS})
    if like_splits and not by_split:
        quoted = ", ".join(map(repr, like_splits))
        raise ValueError(f"{tree.path}: {quoted} look like splits: name them train, val and test, with nothing beside")
    classes = []
    for folder, levels in zip(folders, parts, strict=True):
        names = levels[common:]
        split, name = (names[0], "/".join(names[1:])) if by_split else ("", "/".join(names))
        classes.append(ClassListing(name, split, tuple(Picture(0, file) for file in folders[folder])))
    if isinstance(tree.path, Path) and tree.path.is_dir():
        _complain_of_empty(tree.path, set(folders))
    return sorted(classes, key=lambda class_listing: class_listing.name)


def _complain_of_empty(root: Path, with_images: set[str]) -> None:
    """A class folder without a single image is a mistake of someone's."""
    for folder, folders, _ in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        name = Path(folder).relative_to(root).as_posix()
        if not folders and name not in with_images:
            raise ValueError(f"{folder} holds no images: delete it, or put the images of its class there")


def _from_csv(path: Path) -> list[ClassListing]:
    """Paths are relative to the csv file."""
    text = text_of(path)
    pictures: dict[tuple[str, str], list[Picture]] = {}
    seen: set[str] = set()
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if rows.fieldnames is None or not {"path", "label"} <= set(rows.fieldnames):
            raise ValueError(
                f"{path} must begin with the line path,label or path,label,split; it begins with {rows.fieldnames}"
            )
        for number, row in enumerate(rows, start=2):
            file_name, label, split = row["path"], row["label"], row.get("split") or ""
            if not file_name or not label:
                raise ValueError(
                    f"{path}, line {number}: path and label must both be given, got {file_name!r} and {label!r}"
                )
            if split and split not in SPLITS:
                raise ValueError(f"{path}, line {number}: unknown split {split!r}: use 'train', 'val' or 'test'")
            if not (path.parent / file_name).is_file():
                raise ValueError(f"{path}, line {number}: there is no file {file_name!r} in {path.parent}")
            if not is_image(file_name):
                raise ValueError(f"{path}, line {number}: {file_name!r} is no image file")
            if file_name in seen:
                raise ValueError(f"{path}, line {number}: {file_name!r} was there before")
            seen.add(file_name)
            pictures.setdefault((split, label), []).append(Picture(0, file_name))
    except csv.Error as error:
        raise ValueError(f"{path} is no csv file: {error}") from None
    if not pictures:
        raise ValueError(f"{path} tells of no images")
    splits = {split for split, _ in pictures}
    if "" in splits and len(splits) > 1:
        raise ValueError(f"{path}: some lines tell a split and others do not")
    return [ClassListing(label, split, tuple(members)) for (split, label), members in sorted(pictures.items())]


def _split(classes: Sequence[ClassListing], seed: int) -> list[ClassListing]:
    """Classes at random, by the seed and their number alone; those with a single image cannot be asked about, so they are
    for training. Two classes are the least that can be told apart."""
    n = len(classes)
    val, test = (
        max(2, math.floor(share * n)) if n >= least else 0 for share, least in zip(SHARES[1:], (6, 4), strict=True)
    )
    order = torch.randperm(n, generator=generator_for(seed, "split")).tolist()
    order.sort(key=lambda index: len(classes[index].pictures) < FEW)
    splits = ["val"] * val + ["test"] * test + ["train"] * (n - val - test)
    chosen = sorted(zip(order, splits, strict=True))
    return [ClassListing(classes[index].name, split, classes[index].pictures) for index, split in chosen]
