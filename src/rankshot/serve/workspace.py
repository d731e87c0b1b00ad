"""What was taught, in a folder: classes and their examples, every change on the disk before it is acknowledged.

One SQLite file. A row tells which change brought it and which took it away, so that a change can be undone; what was taken
away stays until its change can no longer be undone. Only one server at a time may have a workspace open.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.files import locked
from rankshot.gallery.database import BESIDE, JOURNAL, check_files
from rankshot.terminal import printable

DATABASE = "workspace.sqlite"
MARK, FORMAT = 0x524B5753, 1  # "RKWS": whose database it is
MOST_CLASSES, MOST_EXAMPLES, LONGEST_NAME = 1000, 20_000, 100
JOINERS = re.compile("[\u200c\u200d]")  # are seen only by what they join: Persian words, families of emoji
UNDOABLE, AT_ONCE = 100, 256  # changes; pictures that are embedded at once
TABLES = (
    "CREATE TABLE about (one INTEGER PRIMARY KEY CHECK (one = 1), network TEXT NOT NULL, revision INTEGER NOT NULL)",
    "CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, class TEXT, before TEXT)",
    "CREATE TABLE classes (id TEXT PRIMARY KEY, name TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER)",
    "CREATE UNIQUE INDEX class_names ON classes (name) WHERE removed IS NULL",
    "CREATE TABLE examples (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, class TEXT NOT NULL, name TEXT NOT NULL, "
    "picture BLOB NOT NULL, vector BLOB NOT NULL, added INTEGER NOT NULL, removed INTEGER)",
    "CREATE INDEX examples_of ON examples (class) WHERE removed IS NULL",
)
STRAY = "SELECT 1 FROM examples WHERE removed IS NULL AND class NOT IN (SELECT id FROM classes WHERE removed IS NULL)"
WIDTHS = "SELECT DISTINCT length(vector) FROM examples"
Vector = NDArray[np.float32]


class Refused(ValueError):
    """What was asked for cannot be done, in one sentence for whoever asked."""


class Conflict(Refused):
    """It does not go with what is there already."""


class Unknown(Refused):
    """There is no such class, example or change."""


class Example(NamedTuple):
    """A picture that was shown for a class."""

    id: str
    class_id: str
    name: str
    vector: Vector


class Class(NamedTuple):
    """A class, with the ids and names of its examples in the order in which they came."""

    id: str
    name: str
    examples: list[tuple[str, str]]


class Picture(NamedTuple):
    """What is to be an example: its file, what it is called, and its embedding."""

    content: bytes
    name: str
    vector: Vector


class Workspace:
    """Classes and examples of one folder; made where there is none. Threads may share it.

    network  the fingerprint of the network that vectors are to be by; where an earlier one made those that are there,
             `embed` makes all of them anew, from the pictures
    """

    def __init__(self, folder: str | Path, network: str, embed: Callable[[Sequence[bytes]], Sequence[Vector]]) -> None:
        self.folder, self.network = Path(folder), network
        self._turn, self._held = threading.RLock(), ExitStack()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._held.enter_context(locked(self.folder)):
            raise Refused(f"{self.folder} is open in another server: stop that one, or give another --workspace")
        try:
            self._connection = self._opened()
        except BaseException:
            self._held.close()
            raise
        self._held.callback(self._connection.close)
        try:
            self._see_by(network, embed)
        except BaseException:
            self.close()
            raise

    def _opened(self) -> sqlite3.Connection:
        path = self.folder / DATABASE
        if any(os.path.lexists(path.with_name(DATABASE + suffix)) for suffix in ("", *BESIDE, JOURNAL)):
            check_files(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
            if connection.execute("PRAGMA application_id").fetchone() == (0,):
                with _transaction(connection):
                    for statement in TABLES:
                        connection.execute(statement)
                    connection.execute("INSERT INTO about VALUES (1, ?, 0)", (self.network,))
                    connection.execute(f"PRAGMA application_id = {MARK}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
            found = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")]
            marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if sorted(found) != sorted(TABLES) or marks != [MARK, FORMAT]:
                raise Refused(f"{path} is no workspace of this version of rankshot")
            if connection.execute(STRAY).fetchone() or len(connection.execute(WIDTHS).fetchall()) > 1:
                raise Refused(f"{path} is damaged: its examples do not belong together")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise Refused(f"{path} is no workspace, or damaged: {error}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _see_by(self, network: str, embed: Callable[[Sequence[bytes]], Sequence[Vector]]) -> None:
        if self._connection.execute("SELECT network FROM about").fetchone() == (network,):
            return
        numbers = [
            number for (number,) in self._connection.execute("SELECT number FROM examples ORDER BY number").fetchall()
        ]
        with _transaction(self._connection):
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                asked = "SELECT picture FROM examples WHERE number = ?"
                pictures = [self._connection.execute(asked, (number,)).fetchone()[0] for number in some]
                if not all(pictures):
                    raise Refused("some examples came without pictures, and so another network cannot see them")
                for number, vector in zip(some, embed(pictures), strict=True):
                    self._connection.execute("UPDATE examples SET vector = ? WHERE number = ?", (_stored(vector), number))
            self._connection.execute("UPDATE about SET network = ?, revision = revision + 1", (network,))

    def close(self) -> None:
        with self._turn:
            self._held.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _writing(self, what: str, class_id: str | None = None, before: str | None = None) -> Iterator[int]:
        """A change, by its number: all of it counts, and is on the disk, when the block ends well."""
        with self._turn, _transaction(self._connection):
            asked = "INSERT INTO changes (what, class, before) VALUES (?, ?, ?) RETURNING number"
            (number,) = self._connection.execute(asked, (what, class_id, before)).fetchone()
            yield number
            self._forget()
            self._connection.execute("UPDATE about SET revision = revision + 1")

    def _forget(self) -> None:
        """All changes but the last ones can no longer be undone: what they took away goes."""
        asked = "SELECT number FROM changes ORDER BY number DESC LIMIT 1 OFFSET ?"
        row = self._connection.execute(asked, (UNDOABLE,)).fetchone()
        if row is None:
            return
        (last,) = row
        self._connection.execute("DELETE FROM changes WHERE number <= ?", (last,))
        for table in ("examples", "classes"):
            self._connection.execute(f"DELETE FROM {table} WHERE removed <= ?", (last,))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes anything meanwhile."""
        with self._turn:
            yield

    @property
    def revision(self) -> int:
        """It grows with every change."""
        with self._turn:
            (revision,) = self._connection.execute("SELECT revision FROM about").fetchone()
        return int(revision)

    def classes(self) -> tuple[int, list[Class]]:
        """The revision, and all classes in the order in which they were made, of that moment."""
        with self._turn:
            rows = self._connection.execute("SELECT id, name FROM classes WHERE removed IS NULL ORDER BY added, rowid")
            found = {id: Class(id, name, []) for id, name in rows}
            asked = "SELECT class, id, name FROM examples WHERE removed IS NULL ORDER BY number"
            for class_id, id, name in self._connection.execute(asked):
                found[class_id].examples.append((id, name))
            return self.revision, list(found.values())

    def examples(self) -> tuple[int, list[Example]]:
        """The revision, and all examples with their vectors, of that moment."""
        with self._turn:
            asked = "SELECT id, class, name, vector FROM examples WHERE removed IS NULL ORDER BY number"
            rows = self._connection.execute(asked).fetchall()
            return self.revision, [
                Example(id, of, name, np.frombuffer(vector, np.float32)) for id, of, name, vector in rows
            ]

    def taught(self) -> tuple[list[Class], list[Example]]:
        """All classes and all examples, of one moment."""
        with self._turn:
            return self.classes()[1], self.examples()[1]

    def picture(self, example_id: str) -> bytes:
        """The file of an example, as it came."""
        with self._turn:
            asked = "SELECT picture FROM examples WHERE id = ? AND removed IS NULL"
            row = self._connection.execute(asked, (example_id,)).fetchone()
        if row is None:
            raise Unknown("there is no such example")
        if not row[0]:
            raise Unknown("this example came without its picture")
        return bytes(row[0])

    def add_class(self, name: str) -> str:
        """Its id."""
        id, name = secrets.token_hex(8), _tidy(name)
        with self._writing("add class") as change:
            self._check_name(name)
            (count,) = self._connection.execute("SELECT count(*) FROM classes WHERE removed IS NULL").fetchone()
            if count >= MOST_CLASSES:
                raise Conflict(f"there are {count} classes already, and there may be no more")
            self._connection.execute("INSERT INTO classes VALUES (?, ?, ?, NULL)", (id, name, change))
        return id

    def rename_class(self, class_id: str, name: str) -> None:
        name = _tidy(name)
        with self._turn:
            before = self._name_of(class_id)
            with self._writing("rename class", class_id, before):
                if name != before:
                    self._check_name(name)
                self._connection.execute("UPDATE classes SET name = ? WHERE id = ?", (name, class_id))

    def remove_class(self, class_id: str) -> None:
        """With all its examples."""
        with self._turn:
            self._name_of(class_id)
            with self._writing("remove class") as change:
                self._connection.execute("UPDATE classes SET removed = ? WHERE id = ?", (change, class_id))
                asked = "UPDATE examples SET removed = ? WHERE class = ? AND removed IS NULL"
                self._connection.execute(asked, (change, class_id))

    def add_examples(self, class_id: str, pictures: Sequence[Picture]) -> list[str]:
        """Their ids."""
        ids = [secrets.token_hex(8) for _ in pictures]
        with self._turn:
            self._name_of(class_id)
            with self._writing("add examples") as change:
                (count,) = self._connection.execute("SELECT count(*) FROM examples WHERE removed IS NULL").fetchone()
                if count + len(pictures) > MOST_EXAMPLES:
                    raise Conflict(f"there are {count} examples already, and there may be {MOST_EXAMPLES} in all")
                asked = "INSERT INTO examples (id, class, name, picture, vector, added) VALUES (?, ?, ?, ?, ?, ?)"
                for id, picture in zip(ids, pictures, strict=True):
                    row = (id, class_id, picture.name[:LONGEST_NAME], picture.content, _stored(picture.vector), change)
                    self._connection.execute(asked, row)
        return ids

    def take_in(self, labels: Sequence[str], names: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
        """Examples that were taught elsewhere, as one change: of classes by their names, new ones where there are none.

        They come without pictures.
        """
        labels = [_tidy(label) for label in labels]
        with self._writing("take in a classifier") as change:
            there = self._connection.execute("SELECT name, id FROM classes WHERE removed IS NULL")
            known: dict[str, str] = dict(there.fetchall())
            for label in dict.fromkeys(labels):
                if label not in known:
                    self._check_name(label)
                    known[label] = secrets.token_hex(8)
                    self._connection.execute("INSERT INTO classes VALUES (?, ?, ?, NULL)", (known[label], label, change))
            (count,) = self._connection.execute("SELECT count(*) FROM examples WHERE removed IS NULL").fetchone()
            if len(known) > MOST_CLASSES or count + len(labels) > MOST_EXAMPLES:
                raise Refused(f"there may be {MOST_CLASSES} classes and {MOST_EXAMPLES} examples in all")
            asked = "INSERT INTO examples (id, class, name, picture, vector, added) VALUES (?, ?, ?, ?, ?, ?)"
            for label, name, vector in zip(labels, names, vectors, strict=True):
                row = (secrets.token_hex(8), known[label], printable(name)[-LONGEST_NAME:], b"", _stored(vector), change)
                self._connection.execute(asked, row)

    def remove_example(self, example_id: str) -> None:
        with self._turn:
            asked = "SELECT 1 FROM examples WHERE id = ? AND removed IS NULL"
            if self._connection.execute(asked, (example_id,)).fetchone() is None:
                raise Unknown("there is no such example")
            with self._writing("remove example") as change:
                self._connection.execute("UPDATE examples SET removed = ? WHERE id = ?", (change, example_id))

    def undo(self) -> str:
        """Take the last change back; what it was."""
        with self._turn:
            last = self._connection.execute(
                "SELECT number, what, class, before FROM changes ORDER BY number DESC"
            ).fetchone()
            if last is None:
                raise Unknown("there is nothing to undo")
            number, what, class_id, before = last
            with _transaction(self._connection):
                for table in ("examples", "classes"):
                    self._connection.execute(f"DELETE FROM {table} WHERE added = ?", (number,))
                    self._connection.execute(f"UPDATE {table} SET removed = NULL WHERE removed = ?", (number,))
                if before is not None:
                    self._connection.execute("UPDATE classes SET name = ? WHERE id = ?", (before, class_id))
                self._connection.execute("DELETE FROM changes WHERE number = ?", (number,))
                self._connection.execute("UPDATE about SET revision = revision + 1")
        return str(what)

    def last_change(self) -> str | None:
        """What `undo` would take back."""
        with self._turn:
            row = self._connection.execute("SELECT what FROM changes ORDER BY number DESC LIMIT 1").fetchone()
        return None if row is None else str(row[0])

    def _name_of(self, class_id: str) -> str:
        row = self._connection.execute("SELECT name FROM classes WHERE id = ? AND removed IS NULL", (class_id,)).fetchone()
        if row is None:
            raise Unknown("there is no such class")
        return str(row[0])

    def _check_name(self, name: str) -> None:
        if not name or len(name) > LONGEST_NAME or not JOINERS.sub("", name).isprintable():
            raise Refused(f"a class needs a name of 1 to {LONGEST_NAME} characters that can be printed")
        if self._connection.execute("SELECT 1 FROM classes WHERE name = ? AND removed IS NULL", (name,)).fetchone():
            raise Conflict(f"there is a class {name!r} already")


def _tidy(name: str) -> str:
    """Two names that look the same are the same."""
    return unicodedata.normalize("NFC", name.strip())


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block counts and is on the disk when it ends well, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _stored(vector: NDArray[np.floating[Any]]) -> bytes:
    return np.ascontiguousarray(vector, np.float32).tobytes()
