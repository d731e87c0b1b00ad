"""Omniglot (Lake et al., 2015): 1,623 characters of 50 alphabets, each drawn by 20 people, with the split of Vinyals et al.

The split is a rule: of all characters, background alphabets by name and then evaluation alphabets by name, the first 1,200
are for training and the last 423 for testing; five alphabets among the first are for validation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rankshot.preprocess import Preprocess

from .listing import ClassListing, Listing, Picture, advised, split_by_split
from .trees import Tree

FILE = re.compile(r"(?:.*/)?images_(background|evaluation)/([^/]+)/(character\d+)/[^/]+\.png")
CHARACTERS, TRAINING, DRAWERS = 1623, 1200, 20
VALIDATION = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
SIZE = 28

HOW = """\
Omniglot is images_background.zip and images_evaluation.zip of https://github.com/brendenlake/omniglot (folder python).
Download both, then: rankshot data prepare omniglot --from images_background.zip images_evaluation.zip"""


def listing(trees: Sequence[Tree], size: int = SIZE) -> Listing:
    """From the two official zips, or from the folders that they unpack to."""
    characters: dict[tuple[str, str, str], list[Picture]] = {}
    for number, tree in enumerate(trees):
        for name in tree.names():
            if match := FILE.fullmatch(f"{tree.path.stem}/{name}"):  # the folder itself may be named
                characters.setdefault((match[1], match[2], match[3]), []).append(Picture(number, name))
    if len(characters) != CHARACTERS:
        parts = {part for part, _, _ in characters}
        missing = " and ".join(f"images_{part}" for part in ("background", "evaluation") if part not in parts)
        lacking = f"; {missing} is missing" if missing else ""
        message = f"Omniglot has {CHARACTERS} characters, but {len(characters)} were found{lacking}."
        raise advised(ValueError(message), HOW)
    for (_, alphabet, character), pictures in characters.items():
        if len(pictures) != DRAWERS:
            raise ValueError(f"Omniglot has {DRAWERS} images of {alphabet}/{character}, but {len(pictures)} were found")
    ordered = sorted(characters)  # "background" comes before "evaluation"
    classes = [
        ClassListing(f"{alphabet}/{character}", _split(index, alphabet), tuple(characters[part, alphabet, character]))
        for index, (part, alphabet, character) in enumerate(ordered)
    ]
    return Listing("omniglot", trees, split_by_split(classes), Preprocess(1, size, size, invert=True), {"size": size})


def _split(index: int, alphabet: str) -> str:
    if index >= TRAINING:
        return "test"
    return "val" if alphabet in VALIDATION else "train"
