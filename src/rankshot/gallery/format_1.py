"""Galleries of the first format: read once, and kept beside what takes their place.

gallery.json   dimensions, and which network the vectors come from
vectors.bin    float32, row after row
items.bin      of every row a line of JSON, [id, metadata]; of every deletion the rows, as 8 bytes each
journal.bin    what counts of them: records of 64 bytes, each with checksums
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from rankshot.files import locked, opened, read_whole, wait_for_folder
from rankshot.schema import Between, parsed, read_json

from .database import BESIDE, DATABASE, PATIENCE
from .database import JOURNAL as ROLLBACK
from .local import LocalStore
from .segment import SEGMENT
from .store import Chunk, Damaged, Vectors

log = logging.getLogger(__name__)

HEADER, VECTORS, ITEMS, JOURNAL = "gallery.json", "vectors.bin", "items.bin", "journal.bin"
MOST_OF_A_RECORD = 2**28  # bytes of one, of at most 4,096 images
KEPT = "format-1"  # the folder of the original
ADDED, DELETED = 1, 2
RECORD = np.dtype(
    [
        ("magic", "S4"),
        ("kind", "u1"),
        ("more", "u1"),  # whether the next record belongs to the same change
        ("place", "<u2"),  # among the records of its change
        ("first", "<u8"),  # row of its first vector
        ("rows", "<u8"),
        ("offset", "<u8"),  # of its bytes in the file of items
        ("length", "<u8"),
        ("vectors", "<u4"),  # checksum of its vectors
        ("items", "<u4"),  # and of its items
        ("_", "V12"),
        ("own", "<u4"),  # and of all of the above
    ]
)
Item = tuple[str, dict[str, Any]]


class Header(TypedDict):
    """What gallery.json holds."""

    format: Literal[1]
    dimensions: Annotated[int, Between(1, 2**16)]
    about: dict[str, Any]


def is_format_1(folder: Path) -> bool:
    """Once the database is there, that counts, whatever a killed process has left beside it."""
    return (folder / HEADER).is_file() and (folder / JOURNAL).is_file() and not os.path.lexists(folder / DATABASE)


def in_todays_format(folder: Path) -> Path:
    """Where the gallery of a folder lies, once it is of today's format."""
    return _migrated(folder) if is_format_1(folder) else folder


def _migrated(folder: Path) -> Path:
    """The folder, where a gallery of today's format lies now; one to be read only is read into a temporary folder."""
    is_ours = os.access(folder, os.W_OK)
    new_folder = Path(
        tempfile.mkdtemp(prefix=".making-" if is_ours else "rankshot-gallery-", dir=folder if is_ours else None)
    )
    if not is_ours:
        atexit.register(shutil.rmtree, new_folder, ignore_errors=True)
        _check_alone(folder)
        _carried_over(folder, new_folder)
        return new_folder
    try:
        with _soon_locked(folder):
            if (folder / DATABASE).exists():  # who did that was faster
                return folder
            _check_alone(folder)
            for left in folder.glob(".making-*"):  # of one that was killed
                if left != new_folder:
                    shutil.rmtree(left, ignore_errors=True)
            _carried_over(folder, new_folder)
            for name in (SEGMENT, DATABASE):  # in this order: from now on the database counts
                if (new_folder / name).exists():
                    (new_folder / name).rename(folder / name)
            wait_for_folder(folder)
            (folder / KEPT).mkdir(exist_ok=True)
            for name in (HEADER, VECTORS, ITEMS, JOURNAL):
                (folder / name).rename(folder / KEPT / name)
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)
    log.info("%s was of an earlier format: the original is kept in %s", folder, folder / KEPT)
    return folder


def _check_alone(folder: Path) -> None:
    """Nothing lies where the new gallery, or the old one, will: it may have come with the folder, and lead anywhere."""
    for name in (KEPT, *(DATABASE + end for end in (*BESIDE, ROLLBACK))):
        if os.path.lexists(folder / name):
            raise Damaged(f"{folder} holds {name}, which no gallery of the first format has: it is not used")


@contextmanager
def _soon_locked(folder: Path) -> Iterator[None]:
    """As soon as no other process has it."""
    ends = time.monotonic() + PATIENCE
    while True:
        with locked(folder) as is_free:
            if is_free:
                yield
                return
        if time.monotonic() > ends:
            raise TimeoutError(f"another process is writing to {folder}: try again when it is done")
        time.sleep(0.05)


def _carried_over(folder: Path, new_folder: Path) -> None:
    old = Format1(folder)
    lost = old.verify()
    if lost:
        raise Damaged(f"{lost[0]}. What is intact can be rescued into a new gallery")
    new = LocalStore.create(new_folder / "new", old.dimensions, old.about)
    for ids, vectors, metadata, sources in old.intact():
        new.add(vectors, ids, metadata, sources)
    new.settle()
    new.close()
    for file in (new_folder / "new").iterdir():
        file.rename(new_folder / file.name)


class Format1:
    """A gallery of the first format, to be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        header: Header = read_json(folder / HEADER, Header)
        self.dimensions, self.about = header["dimensions"], header["about"]
        self._complaints: list[str] = []
        self._records = self._read_journal()
        self._dead = self._deleted()

    def verify(self) -> list[str]:
        """What cannot be read as it was written."""
        return self._complaints + [self._complaint(one) for one in self._records if self._rows_of(one) is None]

    def intact(self) -> Iterator[Chunk]:
        """All that is as it was written, and not deleted, part by part."""
        for one in self._records:
            rows = self._rows_of(one)
            if rows is not None:
                items, vectors = rows
                alive = [index for index in range(len(items)) if int(one["first"]) + index not in self._dead]
                kept = [items[index] for index in alive]
                yield Chunk([id for id, _ in kept], vectors[alive], [note for _, note in kept], [None] * len(kept))

    def _read_journal(self) -> NDArray[Any]:
        """All records but those of a last change that was cut short: it was never acknowledged."""
        content = read_whole(self.folder / JOURNAL)
        records = np.frombuffer(content[: len(content) // RECORD.itemsize * RECORD.itemsize], RECORD)
        while len(records):  # as long as some of the last change's records never reached the disk, all of it does not count
            last = records[-1]
            start = len(records) - 1 - (int(last["place"]) if _is_intact(last) else 0)
            change = records[max(0, start) :]
            is_all = start >= 0 and np.array_equal(change["place"], np.arange(len(change))) and not change[-1]["more"]
            if is_all and all(map(_is_intact, change)):
                break
            if any(not _is_intact(record) and any(record.tobytes()) for record in change):  # no crash leaves that behind
                break
            records = records[: max(0, start)]
        whole = [one for one in records if _is_intact(one)]
        if len(whole) < len(records):
            self._complaints.append(f"{self.folder}: a record of the journal is damaged")
        return np.array(whole, RECORD)

    def _deleted(self) -> set[int]:
        dead: set[int] = set()
        for one in self._records[self._records["kind"] == DELETED]:
            content = self._bytes(one)
            if content is None or len(content) % 8:
                self._complaints.append(f"{self.folder}: a deletion is damaged")
            else:
                dead.update(np.frombuffer(content, "<u8").tolist())
        return dead

    def _rows_of(self, one: Any) -> tuple[list[Item], Vectors] | None:
        """The items and vectors of a block; None where they are damaged. A deletion has none of either."""
        if one["kind"] != ADDED:
            return [], np.zeros((0, self.dimensions), np.float32)
        content, rows, width = self._bytes(one), int(one["rows"]), 4 * self.dimensions
        with opened(self.folder / VECTORS) as file:
            raw = _within(file, int(one["first"]) * width, rows * width)
        if content is None or raw is None or zlib.crc32(raw) != one["vectors"]:
            return None
        where = f"{self.folder / ITEMS}"
        items: list[Item] = [parsed(line, tuple[str, dict[str, Any]], where) for line in content.splitlines()]
        if len(items) != rows:
            return None
        return items, np.frombuffer(raw, "<f4").reshape(rows, self.dimensions)

    def _bytes(self, one: Any) -> bytes | None:
        with opened(self.folder / ITEMS) as file:
            content = _within(file, int(one["offset"]), int(one["length"]))
        return content if content is not None and zlib.crc32(content) == one["items"] else None

    def _complaint(self, one: Any) -> str:
        first, rows = int(one["first"]), int(one["rows"])
        return f"{self.folder}: images {first} to {first + rows - 1} are damaged: their checksum is wrong"


def _within(file: BinaryIO, offset: int, length: int) -> bytes | None:
    """Bytes of a file; None where it is not so long."""
    if length > MOST_OF_A_RECORD or offset + length > os.fstat(file.fileno()).st_size:
        return None
    file.seek(offset)
    return file.read(length)


def _is_intact(one: Any) -> bool:
    return bool(one["magic"] == b"rsg1" and one["own"] == zlib.crc32(one.tobytes()[:-4]))
