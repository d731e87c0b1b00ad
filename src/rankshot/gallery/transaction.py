"""What one transaction reads and writes in the tables of a gallery (see `database` for the tables)."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.schema import Between, parsed

from .database import DATABASE
from .filters import Wanted
from .segment import Block
from .store import Damaged, Filter, Source, UnknownId, decoded, there_already

AT_ONCE = 500  # rows or ids that one question names
Digest = tuple[Annotated[int, Between(0, 10**30)], Annotated[int, Between(-(10**30), 10**30)], str]
ZERO = "\\u0000"  # as JSON has it
RESCUE = "What is intact can be rescued into a new gallery"


class Item(NamedTuple):
    """One image as the tables have it: metadata and where it came from are text."""

    row: int
    id: str
    metadata: str
    source: str | None


class Transaction:
    """Reads, and within `Database.writing` writes. What it reads is checked."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder

    def one(self, asked: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._connection.execute(asked).fetchone()
        if row is None:
            raise Damaged(f"{self._folder / DATABASE} is damaged: it does not tell what it is about")
        return row

    def state(self) -> tuple[int, int]:
        """Number of the last change, and how many rows of vectors count."""
        change, rows = self._whole(self.one("SELECT change, rows FROM state"))
        return change, rows

    def _whole(self, values: Sequence[Any]) -> tuple[int, int]:
        """Two numbers: a column of SQLite's may hold anything."""
        if not all(type(value) is int and 0 <= value < 2**48 for value in values):
            raise Damaged(f"{self._folder / DATABASE} is damaged: where there should be numbers there is {values!r:.60}")
        one, other = values
        return one, other

    def count(self) -> int:
        return int(self.one("SELECT COUNT(*) FROM items")[0])

    def blocks(self, first: int = 0) -> list[Block]:
        asked = "SELECT first, rows, checksum FROM blocks WHERE first >= ? ORDER BY first"
        return [(start, *self._whole(values)) for start, *values in self._connection.execute(asked, (first,))]

    def deleted(self, since: int) -> list[int]:
        """Rows that changes after `since` deleted."""
        return [row for (row,) in self._connection.execute("SELECT row FROM deleted WHERE change > ?", (since,))]

    def items(self, rows: Sequence[int]) -> Iterator[Item]:
        """Those of `rows` that are there."""
        for part in _parts(rows):
            asked = f"SELECT * FROM items WHERE row IN ({', '.join('?' * len(part))}) ORDER BY row"
            for row, key, note, origin, checksum in self._connection.execute(asked, part):
                if not is_intact(row, key, note, origin, checksum):
                    raise Damaged(f"{self._folder}: what is told about image {row} is damaged. {RESCUE}")
                yield Item(row, _id(key), note, origin)

    def intact_items(self, first: int, count: int) -> list[Item]:
        """Those of `count` rows that are as they were written."""
        items = []
        for _, values in self._row_by_row(first, first + count - 1):
            if values is not None:
                row, key, note, origin, _ = values
                with suppress(ValueError):  # of somebody who has made the checksum too
                    self.source(origin)
                    decoded(note)
                    items.append(Item(row, _id(key), note, origin))
        return items

    def with_ids(self, ids: Sequence[str]) -> list[tuple[int, str, str | None]]:
        """(row, id, source) of those that are there."""
        matches: list[tuple[int, str, str | None]] = []
        for part in _parts(ids):
            asked = f"SELECT row, id, source FROM items WHERE id IN ({', '.join('?' * len(part))})"
            matches += [(row, _id(key), origin) for row, key, origin in self._connection.execute(asked, [*map(_key, part)])]
        return matches

    def row(self, id: str) -> int:
        for row, _, _ in self.with_ids([id]):
            return row
        raise UnknownId(id, self.count())

    def matching(self, where: Filter) -> NDArray[np.int64]:
        """Rows whose metadata a filter lets through: by SQL where it can be said so."""
        sql = where.sql if isinstance(where, Wanted) else None
        if sql is not None:
            condition, values = sql
            # SQLite takes a text to end at its first zero: what has one is looked at here.
            selected = f"SELECT row, CASE WHEN instr(metadata, ?) THEN metadata END FROM items WHERE {condition}"
            results = self._connection.execute(selected, [ZERO, *values])
            rows = [row for row, note in results if note is None or where(decoded(note))]
        else:
            asked = self._connection.execute("SELECT row, metadata FROM items")
            rows = [row for row, note in asked if where(decoded(note))]
        return np.array(rows, np.int64)

    def source(self, origin: Any) -> Source | None:
        where = f"{self._folder / DATABASE}: the source of an image"
        if not isinstance(origin, str | None):
            raise Damaged(f"{where} is damaged: it must be a text")
        return None if origin is None else Source(*parsed(origin, Digest, where))

    def insert(
        self, ids: Sequence[str | None], notes: Sequence[str], sources: Sequence[Source | None], first: int
    ) -> list[str]:
        """Into the rows from `first` on; their ids, also of those that had none."""
        names = self._numbered(ids, first)
        keys = [_key(name) for name in names]
        origins = [None if source is None else json.dumps(source) for source in sources]
        items = [
            (first + index, key, note, origin, checksum_of(first + index, key, note, origin))
            for index, (key, note, origin) in enumerate(zip(keys, notes, origins, strict=True))
        ]
        try:
            self._connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", items)
        except sqlite3.IntegrityError:
            known = {id for row, id, _ in self.with_ids(names) if row < first}
            for name in names:
                if name in known:
                    raise there_already(name) from None
            raise Damaged(f"{self._folder} is damaged: it has more images than it counts. {RESCUE}") from None
        return names

    def insert_blocks(self, blocks: Iterable[Block]) -> None:
        self._connection.executemany("INSERT INTO blocks VALUES (?, ?, ?)", blocks)

    def drop(self, rows: Sequence[int], change: int) -> None:
        self._connection.executemany("DELETE FROM items WHERE row = ?", ((row,) for row in rows))
        self._connection.executemany("INSERT INTO deleted VALUES (?, ?)", ((row, change) for row in rows))

    def clear(self) -> None:
        """Nothing is there any more, and nothing was."""
        for table in ("items", "deleted", "blocks"):
            self._connection.execute(f"DELETE FROM {table}")

    def set_about(self, about: str, dimensions: int) -> None:
        self._connection.execute("UPDATE state SET about = ?, dimensions = ?", (about, dimensions))

    def set_state(self, change: int, rows: int) -> None:
        self._connection.execute("UPDATE state SET change = ?, rows = ?", (change, rows))

    def problems(self) -> list[str]:
        """Everything in the tables is read; one line for each thing that is damaged."""
        _, rows = self.state()
        try:
            checks = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check(5)")]
        except sqlite3.DataError as error:  # a value that is larger than anything that we write
            checks = [str(error)]
        problems = [f"{self._folder / DATABASE}: {line}" for line in checks if line != "ok"]
        for row, values in self._row_by_row(0, rows):
            if values is None:
                problems.append(f"{self._folder}: what is told about image {row} is damaged: its checksum is wrong")
        (both,) = self.one("SELECT COUNT(*) FROM items JOIN deleted USING (row)")
        (outside,) = self.one(
            f"SELECT (SELECT COUNT(*) FROM items WHERE row NOT BETWEEN 0 AND {rows - 1}) + "
            f"(SELECT COUNT(*) FROM deleted WHERE row NOT BETWEEN 0 AND {rows - 1})"
        )
        if both or outside or self._accounted_for() != rows:
            problems.append(f"{self._folder}: some images are neither there nor deleted, or both")
        return problems

    def check_counts(self, rows: int) -> None:
        """Every row is there or deleted, and has a vector: one that is not would be missing in silence."""
        if (accounted := self._accounted_for()) != rows:
            raise Damaged(f"{self._folder} is damaged: of {rows} images it tells what became of {accounted}. {RESCUE}")
        (vectors,) = self.one("SELECT COALESCE(SUM(rows), 0) FROM blocks")
        if vectors != rows:
            raise Damaged(f"{self._folder} is damaged: it counts {rows} vectors, and tells of {vectors}. {RESCUE}")

    def _accounted_for(self) -> int:
        (count,) = self.one("SELECT (SELECT COUNT(*) FROM items) + (SELECT COUNT(*) FROM deleted)")
        return int(count)

    def _row_by_row(self, first: int, last: int) -> Iterator[tuple[int, tuple[Any, ...] | None]]:
        """Each with what is told of it; None: not what was written. One that cannot be read is not in the way of others."""
        asked = "SELECT row FROM items WHERE row BETWEEN ? AND ? ORDER BY row"
        for (row,) in self._connection.execute(asked, (first, last)).fetchall():
            try:
                values = self._connection.execute("SELECT * FROM items WHERE row = ?", (row,)).fetchone()
            except sqlite3.DataError:  # larger than anything that we write
                values = None
            yield row, values if values is not None and is_intact(*values) else None

    def _numbered(self, ids: Sequence[str | None], first: int) -> list[str]:
        """Ids that are left open become numbers: that of the row, or the next that is free."""
        taken, number, names = {id for id in ids if id is not None}, first, []
        for id in ids:
            while id is None:
                name, number = str(number), number + 1
                is_there = self._connection.execute("SELECT 1 FROM items WHERE id = ?", (_key(name),)).fetchone()
                id = None if is_there or name in taken else name
            names.append(id)
        return names


def is_intact(row: Any, key: Any, note: Any, origin: Any, checksum: Any) -> bool:
    """Of the right kinds, whoever has made the checksum, and what was written."""
    kinds = isinstance(key, bytes) and isinstance(note, str) and isinstance(origin, str | None)
    return kinds and bool(checksum == checksum_of(row, key, note, origin))


def checksum_of(row: Any, key: Any, note: Any, origin: Any) -> int:
    return zlib.crc32(repr((row, key, note, origin)).encode("utf-8", "surrogatepass"))


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


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))
