"""A gallery in a folder: searched exactly; durable, checked, and shared by threads and processes.

gallery.sqlite   ids, metadata, which rows of vectors count, checksums (see `database` and `transaction`)
vectors.f32      the vectors, mapped into memory (see `segment` and `views`); vectors-….f32 where the gallery was rebuilt

A change is a transaction: its vectors are on the disk before it is committed. A search is one too, a reading one: it sees
the moment at which it began, and is never in the way of who writes.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankshot.files import locked, wait_for_folder
from rankshot.schema import Between, checked, parsed

from .database import DATABASE, Database, create
from .nearest import Found, nearest
from .segment import REBUILT, SEGMENT, Segment
from .store import Chunk, Damaged, Filter, Hit, Metadata, Source, UnknownId, Vectors, check_ids, decoded, encoded
from .transaction import RESCUE, Item, Transaction
from .views import View, Views

ROWS_AT_ONCE = 2**14
VECTORS = (
    "vectors"  # in what the database tells the gallery is about: the name of their file, where it is not the usual one
)
Dimensions = Annotated[int, Between(1, 2**16)]


class LocalStore:
    """See `Store`. To open it reads a few rows, whatever its size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / DATABASE).is_file():
            raise FileNotFoundError(f"{folder} is no gallery: there is no {DATABASE} in it")
        self._database = Database(folder)
        self._described: str | None = None
        with self._reading() as tables:
            about, dimensions = tables.one("SELECT about, dimensions FROM state")
        where = f"{folder / DATABASE}"
        self.about: dict[str, Any] = parsed(about, dict[str, Any], where)
        self._vectors_name: str = self.about.pop(VECTORS, SEGMENT)
        if self._vectors_name != SEGMENT and not (
            isinstance(self._vectors_name, str) and REBUILT.fullmatch(self._vectors_name)
        ):
            raise Damaged(f"{where} is damaged: its vectors cannot be in {str(self._vectors_name)[:60]!r}")
        self.dimensions: int = checked(dimensions, Dimensions, f"{where}: dimensions")
        self._described = about
        self._forget()
        self._may_add = False  # until its counts were compared

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

    def settle(self) -> None:
        """The two files named above are all of it, then."""
        self._database.settle()

    def close(self) -> None:
        self._database.close()
        self._forget()  # lets go of the mapped file

    def __len__(self) -> int:
        with self._reading() as tables:
            return tables.count()

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
        if not ids:
            return []
        with self._writing() as tables:
            change, first = tables.state()
            if not self._may_add:
                tables.check_counts(first)  # vectors go where it says
                self._may_add = True
            if replace:
                named = [id for id in ids if id is not None]
                tables.drop([row for row, _, _ in tables.with_ids(named)], change + 1)
            names = tables.insert(ids, notes, sources or [None] * len(ids), first)
            tables.insert_blocks(self._segment.write(content, first))
            tables.set_state(change + 1, first + len(ids))
        return names

    def delete(self, ids: Sequence[str]) -> None:
        """All or none. The vectors stay in their file, and are not found any more."""
        unique_ids = list(dict.fromkeys(ids))
        with self._writing() as tables:
            change, rows = tables.state()
            known = {id: row for row, id, _ in tables.with_ids(unique_ids)}
            for id in unique_ids:
                if id not in known:
                    raise UnknownId(id, tables.count())
            tables.drop(list(known.values()), change + 1)
            tables.set_state(change + 1, rows)

    @property
    def change(self) -> int:
        """Number of the last change: another one means that something was added or deleted."""
        with self._reading() as tables:
            return tables.state()[0]

    def become(self, new: LocalStore, since: int) -> None:
        """All of another gallery, which nothing was ever deleted from, in place of what is here: in one transaction.

        The other one is used up. Who has this one open is told to open it again. Only one process may be at this.

        since   the last change that the other one knows of; if there were more, nothing is replaced
        """
        name = f"vectors-{secrets.token_hex(4)}.f32"
        try:
            with self._writing() as tables, new._reading() as theirs:
                change, _ = tables.state()
                if change != since:
                    raise ValueError(f"{self.folder} was changed by somebody else meanwhile: nothing was replaced")
                _, rows = theirs.state()
                tables.clear()
                for start in range(0, rows, ROWS_AT_ONCE):
                    items = list(theirs.items(range(start, min(rows, start + ROWS_AT_ONCE))))
                    sources = [theirs.source(item.source) for item in items]
                    tables.insert([item.id for item in items], [item.metadata for item in items], sources, start)
                tables.insert_blocks(theirs.blocks())
                tables.set_about(json.dumps({**new.about, VECTORS: name}), new.dimensions)
                tables.set_state(change + 1, rows)
                if rows:
                    new._segment.path.rename(self.folder.absolute() / name)  # before it counts
                wait_for_folder(self.folder)
        finally:
            with suppress(OSError, ValueError):  # what does not count: the old file, or the new one, or one of a crash
                counts = self._vectors_file()
                for path in self.folder.iterdir():
                    if path.name != counts and (path.name == SEGMENT or REBUILT.fullmatch(path.name)):
                        path.unlink()

    def _vectors_file(self) -> str:
        """The name of the file that counts now."""
        with self._database.reading() as connection:
            (about,) = Transaction(connection, self.folder).one("SELECT about FROM state")
        return str(parsed(about, dict[str, Any], str(self.folder)).get(VECTORS, SEGMENT))

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = False) -> list[list[Hit]]:
        asked = np.ascontiguousarray(queries, np.float32)
        with self._reading() as tables:
            rows = None if where is None else tables.matching(where)
            view = self._views.at(tables)
            return self._hits(tables, self._nearest(view, asked, min(k, max(1, view.alive)), rows, exactly=exactly))

    def vector(self, id: str) -> Vectors:
        with self._reading() as tables:
            return np.array(self._views.at(tables).vectors[tables.row(id)])

    def metadata(self, id: str) -> dict[str, Any]:
        with self._reading() as tables:
            (item,) = tables.items([tables.row(id)])
        return decoded(item.metadata)

    def sources(self, ids: Sequence[str]) -> dict[str, Source | None]:
        with self._reading() as tables:
            return {id: tables.source(origin) for _, id, origin in tables.with_ids(ids)}

    def chunks(self) -> Iterator[Chunk]:
        """As it is at one moment, all of it."""
        with self._reading() as tables:
            view = self._views.at(tables)
            for start in range(0, len(view.vectors), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                alive = np.arange(len(view.vectors))[part]
                alive = alive if view.dead is None else alive[~view.dead[part]]
                yield _chunk(tables, view.vectors, list(tables.items(alive.tolist())))

    def verify(self) -> list[str]:
        """Everything is read; one line for each thing that is damaged."""
        with self._reading() as tables:
            damaged = [self._views.problem_of(block) for block in tables.blocks()]
            return [problem for problem in damaged if problem is not None] + tables.problems()

    def intact(self) -> Iterator[Chunk]:
        """All that is as it was written, part by part, whatever has happened to the rest."""
        with self._reading() as tables:
            for block in tables.blocks():
                first, count, _ = block
                if self._views.problem_of(block) is None:
                    yield _chunk(tables, self._segment.rows(first + count), tables.intact_items(first, count))

    def _nearest(self, view: View, queries: Vectors, k: int, rows: NDArray[np.int64] | None, *, exactly: bool) -> Found:
        """For each query the rows of the nearest, of `rows` where these are given, and how near they are."""
        return nearest(view.vectors, view.dead, queries, k, rows)

    def _hits(self, tables: Transaction, found: Found) -> list[list[Hit]]:
        rows = np.unique(np.concatenate([query_rows for query_rows, _ in found])) if found else np.zeros(0, np.int64)
        items = {item.row: item for item in tables.items(rows.tolist())}
        if len(items) < len(rows):
            raise Damaged(f"{self.folder} is damaged: of some vectors it does not tell whose they are. {RESCUE}")
        return [
            [
                Hit(items[row].id, similarity, decoded(items[row].metadata))
                for row, similarity in zip(query_rows.tolist(), similarities.tolist(), strict=True)
            ]
            for query_rows, similarities in found
        ]

    def _forget(self) -> None:
        self._segment = Segment(self.folder, self.dimensions, self._vectors_name)
        self._views = Views(self.folder, self._segment)

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self._database.reading() as connection:
            yield self._checked(Transaction(connection, self.folder))

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._database.writing() as connection:
            yield self._checked(Transaction(connection, self.folder))

    def _checked(self, tables: Transaction) -> Transaction:
        """Another network's vectors may be here by now, and in another file."""
        if self._described is not None and tables.one("SELECT about FROM state") != (self._described,):
            raise ValueError(f"{self.folder} was rebuilt since it was opened: open it again")
        return tables


def _chunk(tables: Transaction, vectors: Vectors, items: Sequence[Item]) -> Chunk:
    return Chunk(
        [item.id for item in items],
        vectors[[item.row for item in items]],
        [decoded(item.metadata) for item in items],
        [tables.source(item.source) for item in items],
    )
