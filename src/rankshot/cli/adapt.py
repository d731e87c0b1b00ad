"""`rankshot adapt`."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from rankshot.adaptation import Ranked, RankingTransformer, ranked
from rankshot.adaptation.tables import VectorTable, read_vectors
from rankshot.files import check_new_folder, output, whole_folder, write_all, write_whole
from rankshot.hardware import circumstances
from rankshot.limits import real, whole
from rankshot.losses.registry import LOSSES
from rankshot.terminal import say

from .parsing import Files, parsed

EVALUATION = "evaluation.json"  # beside the map
FEWEST_CLASSES = 4  # of which two can be set aside, and two are left
MOST_TESTED = 5000  # rows that rank one another for the table
MOST_LEARNED = 2**28  # values of the rows that the table's map learns from: they are copied out of a mapped file
VALUES_AT_ONCE = 2**22

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """Learn a small map that makes embeddings you have already rank better.

    Vectors of any model, and a label each: NAME.npz; NAME.npy with --labels; NAME.parquet. Rows may be without a label.

    Prints a table, before and after: how well vectors of a test part rank, by a map that has not learned from them. Then
    learns from all rows, and saves that map: rankshot.RankingTransformer.from_pretrained opens it.
    """

    embeddings: Annotated[Path, tyro.conf.Positional]
    """NAME.npz, NAME.npy or NAME.parquet: the vectors, a row each."""
    out: Path
    """New folder for the map."""
    labels: Path | None = None
    """File of labels, a line or a row each: NAME.csv with a line of column names, NAME.npy or NAME.txt. None: they are in
    the file of the vectors."""
    vectors_name: str | None = None
    """Name of the array, or of the column of lists; or what the names of several columns of numbers begin with. None: the
    only one there is."""
    labels_name: str | None = None
    """Name of the array or column of labels. None: the only one there is, or the one called label, class or y."""
    vectors_out: Path | None = None
    """NAME.npy for all vectors as the map gives them: float32, of length 1. None: they are not written."""
    components: int | None = None
    """Dimensions of the map's vectors. None: as many as there are, or 512 where there are more than 2,048."""
    loss: str = "map-dlm"
    """What is learned by: map-dlm, map-ssvm, smooth-ap, supcon, triplet, or any other loss of rankshot train --method."""
    hidden: int | None = None
    """Width of a hidden layer. None: the map is linear."""
    held_out: Literal["auto", "classes", "rows"] = "auto"
    """What is held out to choose the map by, and set aside for the table. classes: the map is for classes that are not
    known yet; rows: for more rows of the same classes; auto: classes where there are four or more."""
    test: float = 0.25
    """Share of the classes, or of the rows, that is set aside for the table. 0: none, and no table."""
    seed: int = 0
    """Of everything random."""
    verbose: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Tell of every evaluation on the way."""
    load: Files = ()


class Parts(NamedTuple):
    """Indices of rows.

    learned   what the table's map learns from
    tested    what is set aside, all of it
    ranked    those of them that rank one another
    company   learned rows that they rank too, where they are of other classes: among themselves, a few classes are easy
    what      is set aside, in words
    """

    learned: Indices
    tested: Indices
    ranked: Indices
    company: Indices
    what: str


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "adapt")
    check(options)
    table = read_vectors(
        options.embeddings, options.labels, vectors_name=options.vectors_name, labels_name=options.labels_name
    )
    rows, dimensions = table.vectors.shape
    if options.components is not None:
        whole("components", options.components, 1, dimensions)
    numbers = numbered(table.labels)
    without = int((numbers < 0).sum())
    classes = many(len(np.unique(numbers[numbers >= 0])), "class", "classes")
    say(
        f"{options.embeddings}: {many(rows, 'row')} of {many(dimensions, 'dimension')}, {classes}"
        + (f"; {many(without, 'row')} without a label" if without else "")
    )
    parts = set_aside(numbers, dimensions, options)
    found = None if parts is None else compared(table, numbers, parts, options)
    transformer = made(options).fit(table.vectors, table.labels)
    save(transformer, table, options, parts, found)
    learned = f"the map, learned from all {many(rows - without, 'row')} with a label"
    others = "" if parts is None else "; that of the table, only from those that were not set aside"
    say(f"{options.out}: {learned}{others}")
    if options.vectors_out is not None:
        components = write_vectors(options.vectors_out, transformer, table.vectors)
        say(f"{options.vectors_out}: {many(rows, 'vector')} of {many(components, 'dimension')}")
    return 0


def check(options: Options) -> None:
    """What would else be told when everything is done."""
    real("test", options.test, 0, 0.9)
    whole("seed", options.seed, 0, 2**32 - 1)
    if options.hidden is not None:
        whole("hidden", options.hidden, 1, 2**14)
    LOSSES[options.loss]  # complains of an unknown one
    check_new_folder(options.out)
    if (to := options.vectors_out) is not None:
        if to.suffix != ".npy":
            raise ValueError(f"{to} must end in .npy")
        if to.is_dir() or not to.parent.is_dir():
            raise ValueError(f"{to} is a folder" if to.is_dir() else f"{to}: there is no folder {to.parent}")


def numbered(labels: NDArray[np.object_]) -> NDArray[np.int64]:
    """The class of every row as a number; -1: it has none."""
    numbers = {name: number for number, name in enumerate(sorted({label for label in labels if label is not None}))}
    return np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)


def set_aside(numbers: NDArray[np.int64], dimensions: int, options: Options) -> Parts | None:
    """What is for the table alone; None where there is too little, which is said."""
    if not options.test:
        return None
    known = np.flatnonzero(numbers >= 0)
    classes, counts = np.unique(numbers[known], return_counts=True)
    rankable = classes[counts > 1]
    generator = np.random.default_rng(options.seed)
    by_class = options.held_out == "classes" or (options.held_out == "auto" and len(rankable) >= FEWEST_CLASSES)
    # Where whole classes are to be held out of what is left, too, that must be enough for it.
    left = FEWEST_CLASSES if options.held_out == "classes" else 2
    if by_class:
        held = min(max(2, round(options.test * len(rankable))), len(rankable) - left)
        tested = known[np.isin(numbers[known], generator.permutation(rankable)[: max(0, held)])]
    else:
        tested = rows_of_each(numbers, known, options.test, generator)
    tested_classes = len(np.unique(numbers[tested]))
    if tested_classes < 2:
        say("too few rows or classes to set any aside: there is no table of how well the map does")
        return None
    chosen = evenly(numbers, tested, MOST_TESTED, generator)
    what = f"{many(tested_classes, 'class', 'classes')}, all {many(len(tested), 'row')} of them"
    if not by_class:
        what = f"{many(len(tested), 'row')} of {many(tested_classes, 'class', 'classes')}"
    is_left = np.ones(len(numbers), dtype=bool)
    is_left[tested] = False
    learned = some(numbers, np.flatnonzero(is_left), MOST_LEARNED // dimensions, generator)
    known_ones = learned[numbers[learned] >= 0] if by_class else learned[:0]
    return Parts(learned, tested, chosen, evenly(numbers, known_ones, MOST_TESTED, generator), what)


def rows_of_each(numbers: NDArray[np.int64], known: Indices, share: float, generator: np.random.Generator) -> Indices:
    """Of every class with four rows or more its share: two at least, so that they can rank; and two are left."""
    order, within, counts = grouped(numbers, known, generator)
    a_part = np.clip((share * counts).astype(np.int64), 2, np.maximum(2, counts - 2))
    return np.sort(order[(counts >= 4) & (within < a_part)])


def evenly(numbers: NDArray[np.int64], rows: Indices, most: int, generator: np.random.Generator) -> Indices:
    """At most so many rows, of all classes alike; ten of each at least, and then not of all classes."""
    if len(rows) <= most:
        return rows
    shuffled = generator.permutation(int(numbers.max()) + 1)  # which classes come first
    order, within, _ = grouped(shuffled[numbers], rows, generator)
    return np.sort(order[within < max(10, most // len(np.unique(numbers[rows])))][:most])


def grouped(
    numbers: NDArray[np.int64], rows: Indices, generator: np.random.Generator
) -> tuple[Indices, Indices, NDArray[np.int64]]:
    """These rows class by class, each in a random order; the place of each within its class; the size of that."""
    order = generator.permutation(rows)
    order = order[np.argsort(numbers[order], kind="stable")]
    _, starts, counts = np.unique(numbers[order], return_index=True, return_counts=True)
    return order, np.arange(len(order)) - np.repeat(starts, counts), np.repeat(counts, counts)


def some(numbers: NDArray[np.int64], rows: Indices, most: int, generator: np.random.Generator) -> Indices:
    """At most so many: those with a class first."""
    if len(rows) <= most:
        return rows
    order = generator.permutation(rows)
    return np.sort(order[np.argsort(numbers[order] < 0, kind="stable")][:most])


def made(options: Options) -> RankingTransformer:
    return RankingTransformer(
        options.components,
        loss=options.loss,
        hidden=options.hidden,
        held_out=options.held_out,
        random_state=options.seed,
        verbose=int(options.verbose),
    )


def compared(table: VectorTable, numbers: NDArray[np.int64], parts: Parts, options: Options) -> tuple[Ranked, Ranked]:
    """How well the test part ranks, before and after; told as a table."""
    sample = "" if len(parts.ranked) == len(parts.tested) else f"; measured on a sample of {len(parts.ranked):,}"
    among = f", which rank one another and {many(len(parts.company), 'learned row')}" if len(parts.company) else ""
    say(f"set aside for this table: {parts.what}{among}{sample}", "")
    transformer = made(options).fit(table.vectors[parts.learned], table.labels[parts.learned])
    rows, queries = np.concatenate([parts.ranked, parts.company]), len(parts.ranked)
    vectors, labels = np.array(table.vectors[rows]), torch.from_numpy(numbers[rows])
    before, after = (ranked(torch.from_numpy(each), labels, queries) for each in (vectors, transformer.transform(vectors)))
    say(*table_of(before, after), "")
    if after.map <= before.map or transformer.is_identity_:
        say("by mAP, the map ranks these rows no better than the vectors as they are")
    return before, after


def table_of(before: Ranked, after: Ranked) -> list[str]:
    lines = [
        ("", "before", "after"),
        ("mean average precision, %", f"{100 * before.map:.1f}", f"{100 * after.map:.1f}"),
        ("nearest one is of the same class, %", f"{100 * before.nearest:.1f}", f"{100 * after.nearest:.1f}"),
    ]
    wide = max(len(line[0]) for line in lines)
    text = [f"{name:<{wide}}  {one:>6}  {other:>6}" for name, one, other in lines]
    return [text[0], "-" * len(text[0]), *text[1:]]


def save(
    transformer: RankingTransformer,
    table: VectorTable,
    options: Options,
    parts: Parts | None,
    found: tuple[Ranked, Ranked] | None,
) -> None:
    """The map, and how well one like it does."""
    known = [label for label in table.labels if label is not None]
    learned = None if parts is None else sum(label is not None for label in table.labels[parts.learned])
    about: dict[str, Any] = {
        **circumstances(options.seed),
        "rows": len(table.vectors),
        "rows_with_a_label": len(known),
        "classes": len(set(known)),
        "dimensions": table.vectors.shape[1],
        "test": options.test,
        "set_aside": None if parts is None else parts.what,
        "rows_learned_from": learned,
        "rows_measured": None if parts is None else len(parts.ranked),
        "rows_beside": None if parts is None else len(parts.company),
        "before": None if found is None else found[0]._asdict(),
        "after": None if found is None else found[1]._asdict(),
    }
    with whole_folder(options.out) as folder:
        transformer.save_pretrained(folder)
        write_whole(folder / EVALUATION, json.dumps(about, indent=1) + "\n")


def write_vectors(path: Path, transformer: RankingTransformer, vectors: NDArray[Any]) -> int:
    """As an .npy file, a part at a time; how many dimensions they have."""
    components = transformer.transform(vectors[:1]).shape[1]
    header = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (len(vectors), components)}
    np.lib.format.write_array_header_1_0(header, about)
    a_part = max(1, VALUES_AT_ONCE // max(components, vectors.shape[1]))
    with output(path) as file:
        write_all(file, header.getvalue())
        for start in range(0, len(vectors), a_part):
            write_all(file, transformer.transform(vectors[start : start + a_part]).astype("<f4").tobytes())
    return int(components)


def many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
