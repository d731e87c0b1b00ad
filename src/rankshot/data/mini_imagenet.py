"""mini-ImageNet (Vinyals et al., 2016): 100 classes of 600 photographs, with the split of Ravi & Larochelle (2017)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from rankshot.preprocess import Preprocess

from .listing import SPLITS, ClassListing, Listing, Picture, advised, is_image
from .trees import Tree

SIZE = 84
WNIDS = {
    "train": """
        n01532829 n01558993 n01704323 n01749939 n01770081 n01843383 n01910747 n02074367 n02089867 n02091831 n02101006
        n02105505 n02108089 n02108551 n02108915 n02111277 n02113712 n02120079 n02165456 n02457408 n02606052 n02687172
        n02747177 n02795169 n02823428 n02966193 n03017168 n03047690 n03062245 n03207743 n03220513 n03337140 n03347037
        n03400231 n03476684 n03527444 n03676483 n03838899 n03854065 n03888605 n03908618 n03924679 n03998194 n04067472
        n04243546 n04251144 n04258138 n04275548 n04296562 n04389033 n04435653 n04443257 n04509417 n04515003 n04596742
        n04604644 n04612504 n06794110 n07584110 n07697537 n07747607 n09246464 n13054560 n13133613""".split(),
    "val": """
        n01855672 n02091244 n02114548 n02138441 n02174001 n02950826 n02971356 n02981792 n03075370 n03417042 n03535780
        n03584254 n03770439 n03773504 n03980874 n09256479""".split(),
    "test": """
        n01930112 n01981276 n02099601 n02110063 n02110341 n02116738 n02129165 n02219486 n02443484 n02871525 n03127925
        n03146219 n03272010 n03544143 n03775546 n04146614 n04149813 n04418357 n04522168 n07613480""".split(),
}
SPLIT_OF = {wnid: split for split, wnids in WNIDS.items() for wnid in wnids}
WNID = re.compile(r"n\d{8}")

HOW = """\
mini-ImageNet is a part of ImageNet, which may be used for non-commercial research; its users pass it on as images/ with
train.csv, val.csv and test.csv. Then: rankshot data prepare mini-imagenet --from images.zip train.csv val.csv test.csv
(or the folder that holds them; the csv files may be left out; class folders n01532829/… do as well)"""


def listing(trees: Sequence[Tree], tables: Sequence[tuple[str, str]] = (), size: int = SIZE) -> Listing:
    """From images whose names, or folders, tell their class; with `tables`, (name, text) of csv files, from those."""
    where: dict[str, Picture] = {}
    for number, tree in enumerate(trees):
        where |= {name: Picture(number, name) for name in tree.names() if is_image(name)}
    members = dict(_by_table(where, tables)) if tables else _by_name(where)
    missing = [wnid for wnid in SPLIT_OF if wnid not in members]
    if missing:
        message = f"mini-ImageNet has {len(SPLIT_OF)} classes, but {len(missing)} are missing: {missing[0]} …"
        raise advised(ValueError(message), HOW)
    classes = [ClassListing(wnid, split, tuple(members[wnid])) for split in SPLITS for wnid in WNIDS[split]]
    return Listing("mini-imagenet", trees, classes, Preprocess(3, size, size), {"size": size})


def _by_name(where: dict[str, Picture]) -> dict[str, list[Picture]]:
    """n0153282900000005.jpg, or n01532829/anything.jpg."""
    members: dict[str, list[Picture]] = {}
    for name, picture in where.items():
        path = PurePosixPath(name)
        match = WNID.match(path.name) or WNID.fullmatch(path.parent.name)
        if match and match[0] in SPLIT_OF:
            members.setdefault(match[0], []).append(picture)
    return members


def _rows(table: str, text: str) -> list[dict[str, str]]:
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if rows.fieldnames is None or not {"filename", "label"} <= set(rows.fieldnames):
            raise ValueError(f"{table} must begin with the line filename,label; it begins with {rows.fieldnames}")
        return list(rows)
    except csv.Error as error:
        raise ValueError(f"{table} is no csv file: {error}") from None


def _by_table(where: dict[str, Picture], tables: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[Picture]]]:
    """As the csv files say; the split must be the known one, so that no result is compared with another by mistake."""
    by_file = {PurePosixPath(name).name: picture for name, picture in where.items()}
    members: dict[str, list[Picture]] = {}
    for table, text in tables:
        split = PurePosixPath(table).stem
        for row in _rows(table, text):
            file, label = row["filename"], row["label"]
            if file not in by_file:
                raise ValueError(f"{table} names {file!r}, which is not among the images")
            if split in SPLITS and SPLIT_OF.get(label) != split:
                raise ValueError(f"{table} has class {label!r}, which is not of the split of Ravi & Larochelle there")
            members.setdefault(label, []).append(by_file[file])
    yield from members.items()
