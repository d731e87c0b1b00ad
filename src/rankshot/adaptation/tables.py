"""Vectors and their labels from files that other programs write: .npz, .npy and .parquet. Nothing is ever unpickled."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.files import check_plain, opened, text_of

VECTORS, LABELS = (".npz", ".npy", ".parquet"), (".csv", ".npy", ".txt")  # what can be read, by suffix
LABEL_NAMES = ("label", "labels", "class", "y")  # of a column or an array, where nobody names one
LONGEST_LABEL = 256  # characters: numpy gives every label the room of the longest
MOST_LISTED = 20  # names in a message
VALUES_AT_ONCE, ROWS_AT_ONCE = 2**22, 4096


class VectorTable(NamedTuple):
    """Rows of a file.

    vectors   (n, D) float32 or float64; memory-mapped where they come from .npy
    labels    (n,) object: a text each, None where the row has none
    """

    vectors: NDArray[Any]
    labels: NDArray[np.object_]


class Unfit(ValueError):
    """A file that does not hold what it should; its message says all."""


class Header(NamedTuple):
    """What an .npy file says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"


def read_vectors(
    path: str | Path, labels: str | Path | None = None, *, vectors_name: str | None = None, labels_name: str | None = None
) -> VectorTable:
    """Vectors with their labels.

    Args:
        path: NAME.npz, NAME.npy or NAME.parquet.
        labels: another file, which holds the labels: NAME.csv with a line of column names, NAME.npy, or NAME.txt with a
            label a line. None: they are in the file of the vectors.
        vectors_name: of an array in .npz, or of a column of lists in .parquet; or what the names of several columns of
            numbers begin with. None: the only one there is.
        labels_name: of an array or a column. None: the only one there is, or the one called label, class or y.
    """
    path = Path(path)
    kind = _kind(path, VECTORS, "vectors")
    needs_labels = labels is None
    if kind == ".npz":
        vectors, found = _from_npz(path, vectors_name, labels_name, needs_labels)
    elif kind == ".parquet":
        vectors, found = _from_parquet(path, vectors_name, labels_name, needs_labels)
    else:
        if vectors_name is not None:
            raise Unfit(f"{path} holds one array, which has no name: {vectors_name!r} cannot be chosen")
        if needs_labels:
            raise Unfit(f"{path} holds vectors alone: name a file of their labels, {_one_of(LABELS)}")
        vectors, found = _mapped(path), []
    vectors = _checked(vectors, path)
    if labels is not None:
        found = _labels_in(Path(labels), labels_name, len(vectors))
    source = path if labels is None else labels
    texts = [_text(value, row, source) for row, value in enumerate(found)]
    if len(texts) != len(vectors):
        raise Unfit(
            f"{source} has {_many(len(texts), 'label')}, and {path} {_many(len(vectors), 'vector')}: one each is right"
        )
    if all(text is None for text in texts):
        raise Unfit(f"{source}: all labels are empty")
    return VectorTable(vectors, np.array(texts, dtype=object))


def _from_npz(
    path: Path, vectors_name: str | None, labels_name: str | None, needs_labels: bool
) -> tuple[NDArray[Any], Sequence[Any]]:
    """Only the arrays that are wanted are read; of the others, what their headers say."""
    with _parsing(path, "an .npz file"), opened(path, follow=True) as file, zipfile.ZipFile(file) as archive:
        headers = {}
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with archive.open(info) as member:
                    headers[info.filename[:-4]] = _header(member)
        there = f"{path} holds {_listed([f'{name} {header}' for name, header in headers.items()])}"
        if vectors_name is None:
            tables = [name for name, (shape, dtype) in headers.items() if len(shape) == 2 and dtype.kind == "f"]
            if len(tables) != 1:
                raise Unfit(
                    f"{there}: vectors are an array (rows, dimensions) of floats, and here {_are(len(tables))}{BY_NAME}"
                )
            vectors_name = tables[0]
        elif vectors_name not in headers:
            raise Unfit(f"{there}: there is no {vectors_name!r}")
        if len(headers[vectors_name].shape) != 2:
            raise Unfit(f"{there}: {vectors_name!r} should be (rows, dimensions)")
        if needs_labels:
            rows = headers[vectors_name].shape[0]
            columns = [name for name, (shape, _) in headers.items() if shape == (rows,)]
            labels_name = _label_name(columns, labels_name, f"{there}: labels are an array ({rows},)", len(columns) == 1)
        vectors = _unzipped(archive, vectors_name, path)
        return vectors, _unzipped(archive, labels_name, path).tolist() if needs_labels and labels_name is not None else []


def _unzipped(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        _refuse_objects(_header(member), f"{path}, {name!r}")
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return array


def _mapped(path: Path) -> NDArray[Any]:
    """An .npy file, of which no more is read than is needed."""
    with _parsing(path, "an .npy file"):
        with opened(path, follow=True) as file:
            header = _header(file)
        _refuse_objects(header, str(path))
        if 0 in header.shape:  # which cannot be mapped
            return np.zeros(header.shape, header.dtype)
        return np.lib.format.open_memmap(path, mode="r")


def _header(file: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # 3.0 is for names of fields, which neither vectors nor labels have
        raise ValueError(f"it is of version {version[0]}.{version[1]} of the .npy format")
    return Header(shape, dtype)


def _refuse_objects(header: Header, place: str) -> None:
    if header.dtype.hasobject:
        raise Unfit(
            f"{place} holds Python objects, which are never loaded: save numbers, or texts as astype(str) makes them"
        )


def _labels_in(path: Path, name: str | None, rows: int) -> Sequence[Any]:
    """A label a row, of another file than that of the vectors."""
    kind = _kind(path, LABELS, "labels")
    if kind == ".csv":
        return _from_csv(path, name, rows)
    if name is not None:
        raise Unfit(f"{path} has no columns: {name!r} cannot be chosen")
    if kind == ".npy":
        array = _mapped(path)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise Unfit(f"{path} holds an array {array.shape}: labels are (rows,)")
        return array.tolist()  # type: ignore[no-any-return]
    return _without_last([line.strip() for line in _lines(path)], rows)


def _from_csv(path: Path, name: str | None, rows: int) -> Sequence[str]:
    lines = _lines(path)
    # Spreadsheets of many countries write semicolons.
    delimiter = next((mark for mark in ",;\t" if mark in lines[0]), ",")
    with _parsing(path, "a .csv file"):
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
        columns = [column.strip() for column in next(reader)]
        numbered = [(reader.line_num, cells) for cells in reader]
    where = f"{path} has the columns {_listed(columns)}"
    label = _label_name(columns, name, f"{where}: labels are one of them", len(columns) == 1)
    if columns.count(label) > 1:
        raise Unfit(f"{where}: {label!r} is there more than once")
    cells_of = _without_last([cells for _, cells in numbered], rows)
    for (line, _), cells in zip(numbered, cells_of, strict=False):
        if len(cells) != len(columns) and (cells or len(columns) > 1):  # an empty line is an empty cell where there is one
            raise Unfit(f"{path}, line {line}: {_many(len(cells), 'cell')}, and {_many(len(columns), 'column')}")
    place = columns.index(label)
    return [cells[place] if cells else "" for cells in cells_of]


def _lines(path: Path) -> list[str]:
    """By line feeds alone: a label may hold what Python takes for a line break."""
    text = text_of(path).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")


def _without_last(lines: list[Any], rows: int) -> list[Any]:
    """Less what is empty at the end of a file, and no row's."""
    while len(lines) > rows and not lines[-1]:
        lines.pop()
    return lines


def _from_parquet(
    path: Path, vectors_name: str | None, labels_name: str | None, needs_labels: bool
) -> tuple[NDArray[Any], Sequence[Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"to read {path} needs pyarrow, which is not here: pip install 'rankshot[parquet]'") from None
    with _parsing(path, "a .parquet file"), opened(path, follow=True) as source, parquet.ParquetFile(source) as file:
        schema = {field.name: field.type for field in file.schema_arrow}
        there = f"{path} has the columns {_listed([f'{name} ({kind})' for name, kind in schema.items()])}"
        if len(schema) < len(file.schema_arrow):
            raise Unfit(f"{there}: one of them is there more than once")
        label = _label_name(schema, labels_name, f"{there}: labels are one of them", False) if needs_labels else None
        columns = _vector_columns(pyarrow.types, schema, vectors_name, label, there)
        rows, at, vectors, labels = file.metadata.num_rows, 0, None, list[Any]()
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=[*columns, *([] if label is None else [label])]):
            if not len(batch):
                continue
            if len(columns) == 1 and not _is_number(pyarrow.types, schema[columns[0]]):
                part = _of_lists(batch.column(columns[0]), f"{path}, {columns[0]!r}", at)
            else:
                part = np.stack([_of_numbers(batch.column(name), f"{path}, {name!r}", at) for name in columns], axis=1)
            if vectors is None:
                vectors = np.empty((rows, part.shape[1]), part.dtype)
            if part.shape[1] != vectors.shape[1]:
                raise Unfit(_ragged(f"{path}, {columns[0]!r}", at, part.shape[1], vectors.shape[1]))
            vectors[at : at + len(part)] = part
            labels += [] if label is None else batch.column(label).to_pylist()
            at += len(part)
        if vectors is None or at != rows:
            raise Unfit(f"{path} has no rows" if not at else f"{path} has {at:,} rows, and should have {rows:,}")
        return vectors, labels


def _vector_columns(types: Any, schema: Mapping[str, Any], name: str | None, label: str | None, there: str) -> list[str]:
    """One of lists, or several of numbers."""
    if name is None:
        lists = [each for each, kind in schema.items() if _is_list(types, kind) and _is_number(types, kind.value_type)]
        if len(lists) != 1:
            more = f"{BY_NAME}; vectors may lie in several columns of numbers, too: name what those begin with"
            raise Unfit(f"{there}: vectors are a column of lists of numbers, and here {_are(len(lists))}{more}")
        return lists
    if name in schema and _is_list(types, schema[name]):
        if not _is_number(types, schema[name].value_type):
            raise Unfit(f"{there}: {name!r} holds lists of {schema[name].value_type}, where numbers should be")
        return [name]
    chosen = [each for each in schema if each.startswith(name) and each != label]
    if not chosen:
        raise Unfit(f"{there}: none is {name!r}, or begins with it")
    for each in chosen:
        if not _is_number(types, schema[each]):
            raise Unfit(f"{there}: {each!r} holds {schema[each]}, where numbers should be")
    return chosen


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _of_lists(column: Any, place: str, start: int) -> NDArray[Any]:
    """Lists of Arrow's, as rows."""
    if column.null_count:
        raise Unfit(f"{place}: row {start + _first(column.is_null())} has no vector")
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    for row, (one, other) in enumerate(pairwise(lengths.tolist())):
        if one != other:
            raise Unfit(_ragged(place, start + row + 1, other, one))
    values = column.flatten()
    if values.null_count:
        raise Unfit(f"{place}: row {start + _first(values.is_null()) // int(lengths[0])} has an empty value")
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(lengths), -1 if len(values) else 0)
    return array


def _of_numbers(column: Any, place: str, start: int) -> NDArray[Any]:
    if column.null_count:
        raise Unfit(f"{place}: row {start + _first(column.is_null())} is empty")
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def _first(which: Any) -> int:
    return int(which.to_numpy(zero_copy_only=False).argmax())


def _ragged(place: str, row: int, length: int, before: int) -> str:
    return f"{place}: row {row} has {_many(length, 'value')}, the one before {before}: all vectors must be of one length"


def _checked(vectors: NDArray[Any], path: Path) -> NDArray[Any]:
    """In a precision that can be computed with, as it is where possible; finite."""
    if vectors.ndim != 2:
        raise Unfit(f"{path} holds an array {vectors.shape}: vectors are (rows, dimensions)")
    if vectors.dtype.kind not in "fiu":
        raise Unfit(f"{path} holds {vectors.dtype}, where numbers should be")
    if 0 in vectors.shape:
        raise Unfit(f"{path} holds {_many(len(vectors), 'vector')} of {_many(vectors.shape[1], 'dimension')}: it is empty")
    precision = np.float32 if np.can_cast(vectors.dtype, np.float32) else np.float64
    if vectors.dtype != precision:
        with np.errstate(over="ignore"):  # what is no finite number then, is told below
            vectors = vectors.astype(precision)
    a_part = max(1, VALUES_AT_ONCE // vectors.shape[1])
    for start in range(0, len(vectors), a_part):
        is_finite = np.isfinite(vectors[start : start + a_part]).all(axis=1)
        if not is_finite.all():
            raise Unfit(f"{path}: row {start + int(is_finite.argmin())} holds values that are no finite numbers")
    return vectors


def _text(value: Any, row: int, path: str | Path) -> str | None:
    """A label, as everybody would write it; None: none."""
    place = f"{path}: the label of row {row}"
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise Unfit(f"{place} is not UTF-8") from None
    if value is None or value != value:
        return None
    if isinstance(value, float):
        if not value.is_integer():
            raise Unfit(f"{place} is {value:g}: a label is a text or a whole number")
        value = int(value)
    if not isinstance(value, (str, int)):
        raise Unfit(f"{place} is of type {type(value).__name__}: a label is a text or a whole number")
    text = str(value).strip()
    if len(text) > LONGEST_LABEL:
        raise Unfit(f"{place} has {len(text):,} characters: {LONGEST_LABEL} at most")
    return text or None


def _label_name(names: Mapping[str, Any] | Sequence[str], wanted: str | None, there: str, may_be_only: bool) -> str:
    """Which of these are the labels: the one that is wanted, the only one, or the one that is called so."""
    if wanted is not None:
        if wanted not in names:
            raise Unfit(f"{there}, and none is {wanted!r}")
        return wanted
    called_so = list(names) if may_be_only else [name for name in names if name in LABEL_NAMES]
    if len(called_so) != 1:
        raise Unfit(f"{there}, and here {_are(len(called_so))}{BY_NAME}")
    return called_so[0]


@contextmanager
def _parsing(path: Path, kind: str) -> Iterator[None]:
    """numpy, zipfile and pyarrow raise many kinds of errors, and few of them name the file."""
    try:
        yield
    except (Unfit, MemoryError):
        raise
    except OSError as error:
        if error.errno:  # of the system, which names it
            raise
        raise _unreadable(path, kind, error) from None
    except Exception as error:
        raise _unreadable(path, kind, error) from None


def _unreadable(path: Path, kind: str, error: Exception) -> Unfit:
    why = str(error).partition("\n")[0][:200] or type(error).__name__
    return Unfit(f"{path} cannot be read as {kind}: {why}")


def _kind(path: Path, known: Sequence[str], what: str) -> str:
    """By its suffix; of a plain file that holds something."""
    kind = path.suffix.lower()
    if kind not in known:
        raise Unfit(f"{path}: {what} are read from {_one_of(known)}")
    check_plain(path, follow=True)
    if not path.stat().st_size:
        raise Unfit(f"{path} is empty")
    return kind


BY_NAME = ": name the one that is meant"


def _are(count: int) -> str:
    return "is none" if not count else f"are {count}"


def _one_of(suffixes: Sequence[str]) -> str:
    *first, last = suffixes
    return f"{', '.join(first)} or {last}"


def _listed(names: Sequence[str]) -> str:
    shown = [name if len(name) <= 80 else f"{name[:80]}…" for name in names[:MOST_LISTED]]
    more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    return ", ".join([*shown, *more]) or "nothing"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
