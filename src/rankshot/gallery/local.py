"""A gallery in a folder: searched exactly; durable, checked, and shared by threads and processes.

gallery.sqlite   ids, metadata, which rows of vectors count, checksums (see `database`)
vectors.f32      the vectors, mapped into memory (see `segment`)

A change is a transaction: its vectors are on the disk before it is committed. A search is one too, a reading one: it sees
the moment at which it began, and is never in the way of who writes.
"""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankshot.files import locked
from rankshot.schema import Between, checked, parsed

from .database import DATABASE, Database, create
from .filters import Wanted
from .nearest import nearest
from .segment import Block, Segment
from .store import (
    Chunk,
    Damaged,
    Filter,
    Hit,
    Metadata,
    Source,
    UnknownId,
    Vectors,
    check_ids,
    decoded,
    encoded,
    there_already,
)

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 2**17
ITEMS_AT_ONCE = 500  # rows that one question names
Dimensions = Annotated[int, Between(1, 2**16)]
Digest = tuple[Annotated[int, Between(0, 2**62)], Annotated[int, Between(-(2**62), 2**62)], str]
RESCUE = "What is intact can be rescued into a new gallery"


class View(NamedTuple):
    """What counts at one moment.

    change   number of the last change
    vectors  (rows, D), also of images that were deleted
    dead     (rows,): those; None where there are none
    """

    change: int
    vectors: Vectors
    dead: NDArray[np.bool_] | None

    @property
    def alive(self) -> int:
        return len(self.vectors) - (0 if self.dead is None else int(np.count_nonzero(self.dead)))


class LocalStore:
    """See `Store`. To open it reads a few rows, whatever its size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / DATABASE).is_file():
            from .format_1 import is_format_1, migrated

            if not is_format_1(folder):
                raise FileNotFoundError(f"{folder} is no gallery: there is no {DATABASE} in it")
            self.folder = folder = migrated(folder)
        self._database = Database(folder)
        with self._database.reading() as connection:
            about, dimensions = _one(connection, folder, "SELECT about, dimensions FROM state")
        where = f"{folder / DATABASE}"
        self.about: dict[str, Any] = parsed(about, dict[str, Any], where)
        self.dimensions: int = checked(dimensions, Dimensions, f"{where}: dimensions")
        self._segment = Segment(folder, self.dimensions)
        self._view = View(-1, self._segment.rows(0), None)
        self._intact = 0  # rows whose checksums were compared

    @classmethod
    def create(cls, folder: Path, dimensions: int, about: Mapping[str, Any]) -> Self:
        """A new and empty one; a folder that holds anything is left alone."""
        checked(dimensions, Dimensions, "the dimensions of a gallery")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder) as is_ours:
            if not is_ours:
                raise FileExistsError(f"{folder} is being made by another process")
            for left in folder.glob(".making-*"):  # of one that was killed
                shutil.rmtree(left, ignore_errors=True)
            if (folder / DATABASE).exists():
                raise FileExistsError(f"{folder} exists already and is not empty: it is a gallery")
            if any(folder.iterdir()):
                raise FileExistsError(f"{folder} is no gallery: it exists already and is not empty")
            create(folder, dimensions, json.dumps(dict(about)))
        return cls(folder)

    @property
    def is_writable(self) -> bool:
        return self._database.is_writable

    def close(self) -> None:
        self._database.close()
        self._view = View(-1, np.zeros((0, self.dimensions), np.float32), None)  # lets go of the mapped file
        self._segment = Segment(self.folder, self.dimensions)

    def __len__(self) -> int:
        with self._database.reading() as connection:
            return int(_one(connection, self.folder, "SELECT COUNT(*) FROM items")[0])

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(self.sources([id]))

    def add(
        self,
        vectors: Vectors,
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sources: Sequence[Source | None] | None = None,
        *,
        replace: bool = False,
    ) -> list[str]:
        """All or none; when it returns, they are on the disk."""
        content = np.ascontiguousarray(vectors, dtype="<f4")
        if content.shape != (len(ids), self.dimensions) or len(metadata) != len(ids):
            raise ValueError(f"{len(ids)} ids need vectors of shape {(len(ids), self.dimensions)}, got {content.shape}")
        check_ids(ids)
        notes = encoded(metadata)
        origins = [None if each is None else json.dumps(each) for each in sources or [None] * len(ids)]
        if not ids:
            return []
        with self._database.writing() as connection:
            change, first = _one(connection, self.folder, "SELECT change + 1, rows FROM state")
            if replace:
                self._drop(connection, [row for row, *_ in self._rows_of(connection, _known(ids))], change)
            names = _numbered(connection, ids, first)
            keys = [_key(name) for name in names]
            items = [
                (first + place, key, note, origin, _checksum(first + place, key, note, origin))
                for place, (key, note, origin) in enumerate(zip(keys, notes, origins, strict=True))
            ]
            try:
                connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", items)
            except sqlite3.IntegrityError:
                there = {id for row, id, _ in self._rows_of(connection, names) if row < first}
                raise there_already(next(name for name in names if name in there)) from None
            connection.executemany("INSERT INTO blocks VALUES (?, ?, ?)", self._segment.write(content, first))
            connection.execute("UPDATE state SET change = ?, rows = ?", (change, first + len(ids)))
        return names

    def delete(self, ids: Sequence[str]) -> None:
        """All or none. The vectors stay in their file, and are not found any more."""
        wanted = list(dict.fromkeys(ids))
        with self._database.writing() as connection:
            (change,) = _one(connection, self.folder, "SELECT change + 1 FROM state")
            rows = {id: row for row, id, _ in self._rows_of(connection, wanted)}
            for each in wanted:
                if each not in rows:
                    raise UnknownId(each, _one(connection, self.folder, "SELECT COUNT(*) FROM items")[0])
            self._drop(connection, list(rows.values()), change)
            connection.execute("UPDATE state SET change = ?", (change,))

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = False) -> list[list[Hit]]:
        asked = np.ascontiguousarray(queries, np.float32)
        with self._database.reading() as connection:
            view = self._view_of(connection)
            rows = None if where is None else self._matching(connection, where)
            found = self._nearest(view, asked, k, rows, exactly=exactly)
            return self._hits(connection, found)

    def _nearest(
        self, view: View, queries: Vectors, k: int, rows: NDArray[np.int64] | None, *, exactly: bool
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """For each query the rows of the nearest, of `rows` where these are given, and how near they are."""
        return nearest(view.vectors, view.dead, queries, k, rows)

    def _hits(
        self, connection: sqlite3.Connection, found: list[tuple[NDArray[np.int64], NDArray[np.float32]]]
    ) -> list[list[Hit]]:
        rows = np.unique(np.concatenate([each for each, _ in found])) if found else np.zeros(0, np.int64)
        items = {row: (id, note) for row, id, note, _ in self._items(connection, rows.tolist())}
        if len(items) < len(rows):
            raise Damaged(f"{self.folder} is damaged: of some vectors it does not tell whose they are. {RESCUE}")
        return [
            [
                Hit(items[row][0], similarity, decoded(items[row][1]))
                for row, similarity in zip(places.tolist(), similarities.tolist(), strict=True)
            ]
            for places, similarities in found
        ]

    def vector(self, id: str) -> Vectors:
        with self._database.reading() as connection:
            row = self._row(connection, id)
            return np.array(self._view_of(connection).vectors[row])

    def metadata(self, id: str) -> dict[str, Any]:
        with self._database.reading() as connection:
            ((_, _, note, _),) = self._items(connection, [self._row(connection, id)])
        return decoded(note)

    def sources(self, ids: Sequence[str]) -> dict[str, Source | None]:
        with self._database.reading() as connection:
            return {id: _source(origin, self.folder) for _, id, origin in self._rows_of(connection, ids)}

    def chunks(self) -> Iterator[Chunk]:
        start, rows = 0, 1
        while start < rows:
            with self._database.reading() as connection:
                view = self._view_of(connection)
                rows, some = len(view.vectors), slice(start, start + ROWS_AT_ONCE)
                alive = np.arange(rows)[some]
                alive = alive if view.dead is None else alive[~view.dead[some]]
                chunk = self._chunk(view.vectors, list(self._items(connection, alive.tolist())))
            yield chunk
            start += ROWS_AT_ONCE

    def verify(self) -> list[str]:
        """Everything is read; one line for each thing that is damaged."""
        with self._database.reading() as connection:
            problems = [str(each) for (each,) in connection.execute("PRAGMA integrity_check(5)")]
            found = [f"{self.folder / DATABASE}: {each}" for each in problems if each != "ok"]
            (rows,) = _one(connection, self.folder, "SELECT rows FROM state")
            for first, count, checksum in connection.execute("SELECT first, rows, checksum FROM blocks ORDER BY first"):
                if self._is_damaged((first, count, checksum)):
                    found.append(
                        f"{self.folder}: images {first} to {first + count - 1} are damaged: their checksum is wrong"
                    )
            for row, key, note, origin, checksum in connection.execute("SELECT * FROM items ORDER BY row"):
                if checksum != _checksum(row, key, note, origin):
                    found.append(f"{self.folder}: what is told about image {row} is damaged: its checksum is wrong")
            dead, there = (
                {row for (row,) in connection.execute(f"SELECT row FROM {table}")} for table in ("deleted", "items")
            )
            if (dead & there) or (dead | there) != set(range(rows)):
                found.append(f"{self.folder}: some images are neither there nor deleted, or both")
        return found

    def intact(self) -> Iterator[Chunk]:
        """All that is as it was written, part by part, whatever has happened to the rest."""
        with self._database.reading() as connection:
            for block in connection.execute("SELECT first, rows, checksum FROM blocks ORDER BY first").fetchall():
                first, count, _ = block
                if self._is_damaged(block):
                    continue
                found = connection.execute("SELECT * FROM items WHERE row BETWEEN ? AND ?", (first, first + count - 1))
                items = [(row, _id(key), *told) for row, key, *told, sum in found if sum == _checksum(row, key, *told)]
                yield self._chunk(self._segment.rows(first + count), items)

    def _chunk(self, vectors: Vectors, items: Sequence[tuple[int, str, str, str | None]]) -> Chunk:
        return Chunk(
            [id for _, id, _, _ in items],
            vectors[[row for row, *_ in items]],
            [decoded(note) for _, _, note, _ in items],
            [_source(origin, self.folder) for _, _, _, origin in items],
        )

    # What is read within a transaction.

    def _view_of(self, connection: sqlite3.Connection) -> View:
        """What counts for this transaction; what has changed since the last one is read, and no more."""
        change, rows = _one(connection, self.folder, "SELECT change, rows FROM state")
        before = self._view
        if before.change == change:
            return before
        if before.change > change:  # another thread has seen more than this transaction
            before = View(-1, before.vectors[:0], None)
        self._check_blocks(connection, rows)
        if before.change < 0:
            self._check_counts(connection, rows)
        gone = [row for (row,) in connection.execute("SELECT row FROM deleted WHERE change > ?", (before.change,))]
        dead = None
        if gone or before.dead is not None:
            dead = np.zeros(rows, bool)
            dead[: len(before.vectors)] = False if before.dead is None else before.dead
            if gone and not 0 <= min(gone) <= max(gone) < rows:
                raise Damaged(f"{self.folder} is damaged: an image was deleted that never was there. {RESCUE}")
            dead[gone] = True
        view = View(change, self._segment.rows(rows), dead)
        if self._view.change < change:
            self._view = view
        return view

    def _check_blocks(self, connection: sqlite3.Connection, rows: int) -> None:
        """Vectors that were not looked at before, against their checksums."""
        place = self._intact
        asked = "SELECT first, rows, checksum FROM blocks WHERE first >= ? ORDER BY first"
        for first, count, checksum in connection.execute(asked, (place,)):
            if first != place or count < 1 or first + count > rows:
                raise Damaged(f"{self.folder} is damaged: its vectors are not told of one after another. {RESCUE}")
            if self._is_damaged((first, count, checksum)):
                raise Damaged(f"{self.folder}: {_damaged_images(first, count)}. {RESCUE}")
            place += count
        if place < rows:
            raise Damaged(f"{self.folder} is damaged: it counts {rows} vectors, and tells of {place}. {RESCUE}")
        self._intact = max(self._intact, place)

    def _check_counts(self, connection: sqlite3.Connection, rows: int) -> None:
        """Every row is there or deleted: one that is neither would be missing in silence."""
        asked = "SELECT (SELECT COUNT(*) FROM items) + (SELECT COUNT(*) FROM deleted)"
        (told,) = _one(connection, self.folder, asked)
        if told != rows:
            raise Damaged(f"{self.folder} is damaged: of {rows} images it tells what became of {told}. {RESCUE}")

    def _is_damaged(self, block: Block) -> bool:
        try:
            return not self._segment.is_intact(block)
        except (Damaged, FileNotFoundError):
            return True

    def _matching(self, connection: sqlite3.Connection, where: Filter) -> NDArray[np.int64]:
        """Rows whose metadata a filter lets through: by SQL where it can be told so."""
        told_so = where.sql if isinstance(where, Wanted) else None
        if told_so is not None:
            condition, values = told_so
            rows = [row for (row,) in connection.execute(f"SELECT row FROM items WHERE {condition}", values)]
        else:
            asked = connection.execute("SELECT row, metadata FROM items")
            rows = [row for row, note in asked if where(decoded(note))]
        return np.array(rows, np.int64)

    def _items(self, connection: sqlite3.Connection, rows: Sequence[int]) -> Iterator[tuple[int, str, str, str | None]]:
        """(row, id, metadata, source) of those that are there, checked."""
        for some in _parts(rows):
            asked = f"SELECT * FROM items WHERE row IN ({', '.join('?' * len(some))}) ORDER BY row"
            for row, key, note, origin, checksum in connection.execute(asked, some):
                if checksum != _checksum(row, key, note, origin):
                    raise Damaged(f"{self.folder}: what is told about image {row} is damaged. {RESCUE}")
                yield row, _id(key), note, origin

    def _rows_of(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[tuple[int, str, str | None]]:
        """(row, id, source) of those that are there."""
        found: list[tuple[int, str, str | None]] = []
        for some in _parts(ids):
            asked = f"SELECT row, id, source FROM items WHERE id IN ({', '.join('?' * len(some))})"
            found += [(row, _id(key), origin) for row, key, origin in connection.execute(asked, [*map(_key, some)])]
        return found

    def _row(self, connection: sqlite3.Connection, id: str) -> int:
        found = self._rows_of(connection, [id])
        if not found:
            raise UnknownId(id, _one(connection, self.folder, "SELECT COUNT(*) FROM items")[0])
        return found[0][0]

    def _drop(self, connection: sqlite3.Connection, rows: Sequence[int], change: int) -> None:
        connection.executemany("DELETE FROM items WHERE row = ?", ((row,) for row in rows))
        connection.executemany("INSERT INTO deleted VALUES (?, ?)", ((row, change) for row in rows))


def _damaged_images(first: int, count: int) -> str:
    return f"images {first} to {first + count - 1} are damaged: their checksum is wrong"


def _known(ids: Iterable[str | None]) -> list[str]:
    return [each for each in ids if each is not None]


def _numbered(connection: sqlite3.Connection, ids: Sequence[str | None], first: int) -> list[str]:
    """Ids that are left open become numbers: that of the row, or the next that is free."""
    if None not in ids:
        return _known(ids)
    taken, number, names = set(_known(ids)), first, []
    for each in ids:
        while each is None:
            name, number = str(number), number + 1
            is_there = connection.execute("SELECT 1 FROM items WHERE id = ?", (_key(name),)).fetchone()
            each = None if is_there or name in taken else name
        names.append(each)
    return names


def _key(id: str) -> bytes:
    """Names of files need not be text: what is none is kept too."""
    if not isinstance(id, str):
        raise TypeError(f"an id must be a string, got {id!r}")
    return id.encode("utf-8", "surrogatepass")


def _id(key: Any) -> str:
    try:
        return bytes(key).decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, TypeError):
        raise Damaged(f"an id is damaged: {key!r}") from None


def _checksum(row: Any, key: Any, note: Any, origin: Any) -> int:
    return zlib.crc32(repr((row, key, note, origin)).encode("utf-8", "surrogatepass"))


def _source(origin: Any, folder: Path) -> Source | None:
    return None if origin is None else Source(*parsed(origin, Digest, f"{folder / DATABASE}: the source of an image"))


def _one(connection: sqlite3.Connection, folder: Path, asked: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] | None = connection.execute(asked).fetchone()
    if found is None:
        raise Damaged(f"{folder / DATABASE} is damaged: it does not tell what it is about")
    return found


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + ITEMS_AT_ONCE] for start in range(0, len(values), ITEMS_AT_ONCE))
