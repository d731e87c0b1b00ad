"""CUB-200-2011 (Wah et al., 2011): 11,788 photographs of 200 kinds of birds, cropped to their bounding boxes.

"cub" is the few-shot split of Reed et al. (2016), 100 / 50 / 50 classes; "cub-retrieval" the first 100 against the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from rankshot.preprocess import Preprocess

from .decoding import Box
from .listing import ClassListing, Listing, Picture, advised, by_folder, split_by_split
from .trees import Tree

SIZE, CLASSES = 64, 200
VALIDATION = frozenset(
    map(
        int,
        """
    2 12 13 17 19 21 22 26 27 30 41 45 46 55 61 63 64 65 67 68 74 80 82 89 97 105 109 111 122 124 125 131 133 134 137 140
    143 145 148 152 155 157 164 169 170 177 179 194 195 199""".split(),
    )
)
TEST = frozenset(
    map(
        int,
        """
    1 4 6 8 9 14 23 29 31 33 34 35 36 37 38 43 49 51 53 66 72 79 83 84 86 91 95 96 98 101 102 103 112 114 119 121 130 135
    138 147 156 163 165 166 180 183 185 186 187 197""".split(),
    )
)
CLASS = re.compile(r"(\d{3})\..+")

HOW = """\
CUB-200-2011 may be used for non-commercial research. Download CUB_200_2011.tgz from
https://www.vision.caltech.edu/datasets/cub_200_2011/, then: rankshot data prepare cub --from CUB_200_2011.tgz
(or the folder it unpacks to; or class folders 001.Black_footed_Albatross/… that are cropped already)"""


def listing(
    trees: Sequence[Tree], name: str = "cub", size: int = SIZE, crop: bool = True, partial: bool = False
) -> Listing:
    """From the original download, which tells the bounding boxes, or from class folders that are cropped already.

    `partial` accepts fewer than the 200 classes.
    """
    boxes = [_boxes(tree) if crop else {} for tree in trees]
    classes = []
    for number, tree in enumerate(trees):
        for folder, files in by_folder(tree.names()).items():
            if not (match := CLASS.fullmatch(PurePosixPath(folder).name)):
                continue
            pictures = tuple(
                Picture(number, file, boxes[number].get("/".join(PurePosixPath(file).parts[-2:]))) for file in files
            )
            if boxes[number] and any(picture.box is None for picture in pictures):
                lost = next(picture.name for picture in pictures if picture.box is None)
                raise ValueError(f"{tree.path}: bounding_boxes.txt has no box for {lost}")
            classes.append(ClassListing(match[0], _split(name, int(match[1])), pictures))
    if len(classes) != CLASSES and not (partial and classes):
        raise advised(ValueError(f"CUB-200-2011 has {CLASSES} classes, but {len(classes)} were found."), HOW)
    classes.sort(key=lambda class_listing: class_listing.name)
    options = {"size": size, "cropped": "to bounding boxes" if any(boxes) else "as it came"}
    return Listing(name, trees, split_by_split(classes), Preprocess(3, size, size), options)


def _split(name: str, number: int) -> str:
    if name == "cub-retrieval":
        return "train" if number <= CLASSES // 2 else "test"
    return "val" if number in VALIDATION else "test" if number in TEST else "train"


def _boxes(tree: Tree) -> dict[str, Box]:
    """class/file -> its box, from images.txt and bounding_boxes.txt; nothing where there are none."""
    tables = {
        PurePosixPath(name).name: name for name in tree.names() if name.endswith(("images.txt", "bounding_boxes.txt"))
    }
    if "images.txt" in tables and len(tables) < 2:
        raise ValueError(f"{tree.path} has images.txt but no bounding_boxes.txt to crop by; --whole needs none")
    if len(tables) != 2:
        return {}
    texts = {PurePosixPath(name).name: content for name, content in tree.read(tables.values())}
    rows: dict[str, list[list[str]]] = {}
    for name, content in texts.items():
        if isinstance(content, OSError):
            raise ValueError(f"{tree.path / tables[name]}: {content}")
        rows[name] = [line.split() for line in content.decode().splitlines() if line.strip()]
    files = {row[0]: row[1] for row in rows["images.txt"] if len(row) == 2}
    boxes = {}
    for row in rows["bounding_boxes.txt"]:
        try:
            number, left, top, width, height = row[0], *map(float, row[1:])
        except ValueError:
            raise ValueError(
                f"{tree.path / tables['bounding_boxes.txt']}: cannot read the line {' '.join(row)!r}"
            ) from None
        if number in files:
            boxes[files[number]] = (left, top, left + width, top + height)
    return boxes
