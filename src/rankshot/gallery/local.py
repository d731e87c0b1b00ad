"""A gallery in a folder: vectors in a memory-mapped file, searched exactly; durable, and checked.

gallery.json   dimensions, and which network the vectors come from
vectors.bin    float32, row after row
items.bin      of every row a line of JSON, [id, metadata]; of every deletion the rows, as 8 bytes each
journal.bin    what counts of them, with checksums (see `journal`)

What counts is never touched again. A change is first written behind it, then acknowledged by a record: whatever moment the
process dies at, what was acknowledged is there, and what was not is overwritten by the next.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from rankshot.files import locked, named, write_whole
from rankshot.schema import read_json

from . import journal
from .journal import ADDED, DELETED
from .store import Damaged, Filter, Hit, Metadata, UnknownId, Vectors, check_new

HEADER, VECTORS, ITEMS, JOURNAL = "gallery.json", "vectors.bin", "items.bin", "journal.bin"
FORMAT = 1
ROWS_OF_A_BLOCK = 4096  # which has a checksum of its own: so much is lost with one wrong byte
ROWS_AT_ONCE = 2**17
SIMILARITIES_AT_ONCE = 2**25
PATIENCE = 10.0  # seconds to wait for another process that is writing


class LocalStore:
    """See `Store`. `open` reads the header and the journal alone, whatever the size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / HEADER).is_file():
            raise FileNotFoundError(f"{folder} is no gallery: there is no {HEADER} in it")
        header = read_json(folder / HEADER)
        if header.get("format") != FORMAT:
            raise ValueError(f"{folder / HEADER} is of format {header.get('format')!r}: this version reads {FORMAT}")
        if not isinstance(header.get("dimensions"), int) or not isinstance(header.get("about"), dict):
            raise Damaged(f"{folder / HEADER} is damaged: it should tell 'dimensions' and 'about'")
        self.dimensions: int = header["dimensions"]
        self.about: dict[str, Any] = header["about"]
        self.is_writable = os.access(folder / JOURNAL, os.W_OK)
        flags = os.O_RDWR if self.is_writable else os.O_RDONLY
        self._files = {}
        for name in (VECTORS, ITEMS, JOURNAL):
            with named(folder / name):
                self._files[name] = os.open(folder / name, flags)
        self._checked = np.zeros(0, bool)  # of the records: whether they and their data were found intact
        self._lines: dict[int, list[bytes]] = {}
        self._read_journal()

    @classmethod
    def create(cls, folder: Path, dimensions: int, about: Mapping[str, Any]) -> Self:
        """A new and empty one; a folder that holds anything is left alone."""
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder} exists already and is not empty")
        for name in (VECTORS, ITEMS, JOURNAL):
            (folder / name).touch()
        header = {"format": FORMAT, "dimensions": dimensions, "about": dict(about)}
        write_whole(folder / HEADER, json.dumps(header, indent=1) + "\n")  # last: it makes the folder a gallery
        return cls(folder)

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files = {}

    def __len__(self) -> int:
        self._catch_up()
        return self._rows - len(self._dead)

    def __contains__(self, id: object) -> bool:
        return id in self._places()

    def add(self, vectors: Vectors, ids: Sequence[str], metadata: Sequence[Metadata]) -> None:
        """All or none; when it returns, they are on the disk."""
        content = np.ascontiguousarray(vectors, dtype="<f4")
        if content.shape != (len(ids), self.dimensions) or len(metadata) != len(ids):
            raise ValueError(f"{len(ids)} ids need vectors of shape {(len(ids), self.dimensions)}, got {content.shape}")
        with self._writing():
            places = self._places()
            check_new(ids, places.__contains__)
            lines = [json.dumps([id, dict(each)]) for id, each in zip(ids, metadata, strict=True)]
            if not ids:
                return
            first, offset = self._rows, self._items_end
            made: list[journal.Records] = []
            blocks: list[bytes] = []
            for start in range(0, len(ids), ROWS_OF_A_BLOCK):
                some = slice(start, min(start + ROWS_OF_A_BLOCK, len(ids)))
                items = "".join(f"{line}\n" for line in lines[some]).encode()
                rows, more = some.stop - start, some.stop < len(ids)
                made.append(
                    journal.record(ADDED, first + start, rows, offset, content[some].data, items, len(made), more=more)
                )
                blocks.append(items)
                offset += len(items)
            _write(self._files[VECTORS], content.data.cast("B"), first * self.dimensions * 4)
            _write(self._files[ITEMS], b"".join(blocks), self._items_end)
            self._acknowledge(made)
            places.update(zip(ids, range(first, self._rows), strict=True))

    def delete(self, ids: Sequence[str]) -> None:
        """All or none. The rows stay in the files, and are not found any more."""
        with self._writing():
            places = self._places()
            rows = []
            for each in dict.fromkeys(ids):
                if each not in places:
                    raise UnknownId(each, len(self))
                rows.append(places[each])
            if not rows:
                return
            content, offset = np.array(rows, "<u8").tobytes(), self._items_end
            _write(self._files[ITEMS], content, offset)
            self._acknowledge([journal.record(DELETED, 0, 0, offset, b"", content)])
            for each in ids:
                places.pop(each, None)

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = True) -> list[list[Hit]]:
        if not len(self):  # which also catches up
            return [[] for _ in queries]
        allowed = self._allowed(where)
        asked, found = torch.from_numpy(np.ascontiguousarray(queries, np.float32)), []
        for some in torch.split(asked, max(1, SIMILARITIES_AT_ONCE // min(self._rows, ROWS_AT_ONCE))):
            found += self._nearest(some, k, allowed)
        return found

    def _nearest(self, queries: torch.Tensor, k: int, allowed: torch.Tensor | None) -> list[list[Hit]]:
        best = torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.long)
        vectors = self._vectors()
        for start in range(0, self._rows, ROWS_AT_ONCE):
            similarities = queries @ torch.from_numpy(vectors[start : start + ROWS_AT_ONCE]).T
            if allowed is not None:
                similarities.masked_fill_(~allowed[start : start + ROWS_AT_ONCE], -torch.inf)
            top = similarities.topk(min(k, similarities.shape[1]))
            joined = torch.cat([best[0], top.values], 1), torch.cat([best[1], top.indices + start], 1)
            kept = joined[0].topk(min(k, joined[0].shape[1]))
            best = kept.values, joined[1].gather(1, kept.indices)
        return [
            [self._hit(row, similarity) for similarity, row in zip(*each, strict=True) if similarity > -2]
            for each in zip(best[0].tolist(), best[1].tolist(), strict=True)
        ]

    def _hit(self, row: int, similarity: float) -> Hit:
        id, metadata = self._item(row)
        return Hit(id, similarity, metadata)

    def vector(self, id: str) -> Vectors:
        return np.array(self._vectors()[self._row(id)])

    def metadata(self, id: str) -> dict[str, Any]:
        return self._item(self._row(id))[1]

    def _row(self, id: str) -> int:
        row = self._places().get(id)
        if row is None:
            raise UnknownId(id, len(self))
        return row

    def chunks(self) -> Iterator[tuple[list[str], Vectors]]:
        self._catch_up()
        alive, vectors = self._alive(), self._vectors()
        for start in range(0, self._rows, ROWS_AT_ONCE):
            rows = start + np.flatnonzero(alive[start : start + ROWS_AT_ONCE])
            yield [self._item(row)[0] for row in rows.tolist()], vectors[rows]

    def verify(self) -> list[str]:
        """What is damaged, if anything: every block is read and compared with its checksum."""
        found = [f"{self.folder}: {self._told(one)}" for one in self._records if self._damage(one)]
        counted = {VECTORS: self._rows * self.dimensions * 4, ITEMS: self._items_end, JOURNAL: self._records.nbytes}
        for name, size in counted.items():
            if (more := os.fstat(self._files[name]).st_size - size) > 0:
                found.append(
                    f"{self.folder / name}: the last {more} bytes do not count: of an addition that was never finished, or "
                    "the journal has lost its end"
                )
        return found

    def rescue(self, folder: Path) -> tuple[LocalStore, list[str]]:
        """A new gallery of all that is intact, and what was lost, or is uncertain."""
        other, lost = LocalStore.create(folder, self.dimensions, self.about), self.verify()
        for one in self._records:
            if one["kind"] == ADDED and not self._damage(one):
                first, rows = int(one["first"]), int(one["rows"])
                items = [json.loads(line) for line in self._bytes(one).splitlines()]
                alive = [place for place in range(rows) if first + place not in self._dead]
                vectors = np.frombuffer(self._raw(one), "<f4").reshape(rows, self.dimensions)[alive]
                other.add(vectors, [items[place][0] for place in alive], [items[place][1] for place in alive])
        return other, lost

    # What is in memory of it: the journal, and as much of the rest as was asked for.

    def _read_journal(self) -> None:
        self._broken: str | None = None
        try:
            self._records = journal.read(self.folder / JOURNAL)
        except journal.DamagedJournal as error:
            self._records, self._broken = error.intact, str(error)
        self._size = os.fstat(self._files[JOURNAL]).st_size
        self._checked = np.pad(self._checked, (0, max(0, len(self._records) - len(self._checked))))[: len(self._records)]
        self._index: dict[str, int] | None = None
        self._dead: set[int] = set()
        self._deletions = 0  # that are in it
        self._sum_up()

    def _sum_up(self) -> None:
        sound = self._records
        last_added = sound[sound["kind"] == ADDED][-1:]
        if len(last_added) and not journal.is_intact(last_added[0]):  # it tells how many rows there are
            self._broken = "a record of the journal is damaged"
        if self._broken:  # nothing is looked for in it, but what is intact can be rescued
            sound = sound[[journal.is_intact(one) for one in sound]]
        added = sound[sound["kind"] == ADDED]
        self._rows = int(added[-1]["first"] + added[-1]["rows"]) if len(added) else 0
        last = sound[-1:]
        self._items_end = int(last[0]["offset"] + last[0]["length"]) if len(last) else 0
        self._starts = added["first"].astype(np.int64)
        self._added = np.flatnonzero(self._records["kind"] == ADDED)
        deletions = sound[sound["kind"] == DELETED]
        for one in deletions[self._deletions :]:
            if self._damage(one):
                self._broken = "a deletion is damaged"
            else:
                self._dead.update(np.frombuffer(self._bytes(one), "<u8").tolist())
        self._deletions = len(deletions)

    def _acknowledge(self, made: Sequence[journal.Records]) -> None:
        self._records = journal.append(self._files[JOURNAL], self._records, made)
        self._checked = np.append(self._checked, np.ones(len(made), bool))  # we wrote them
        self._size = os.fstat(self._files[JOURNAL]).st_size
        self._sum_up()

    def _catch_up(self) -> None:
        """With what others have written in the meantime. A damaged one is not used."""
        if os.fstat(self._files[JOURNAL]).st_size != self._size:
            self._read_journal()
        if self._broken:
            raise Damaged(f"{self.folder}: {self._broken}. What is intact can be rescued into a new gallery")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Alone, and with what others have written in the meantime."""
        if not self.is_writable:
            raise PermissionError(f"{self.folder} is read-only")
        ends = time.monotonic() + PATIENCE
        while True:
            with locked(self.folder) as is_ours:
                if is_ours:
                    self._catch_up()
                    with named(self.folder):
                        yield
                    return
            if time.monotonic() > ends:
                raise TimeoutError(f"another process has been writing to {self.folder} for {PATIENCE:g} s")
            time.sleep(0.01)

    def _vectors(self) -> NDArray[np.float32]:
        """All rows, checked once."""
        self._catch_up()
        for place in np.flatnonzero(~self._checked):
            if self._damage(self._records[place]):
                told = self._told(self._records[place])
                raise Damaged(f"{self.folder}: {told}. What is intact can be rescued into a new gallery")
            self._checked[place] = True
        return self._mapped()

    def _mapped(self) -> NDArray[np.float32]:
        if not self._rows:
            return np.zeros((0, self.dimensions), np.float32)
        mapped = np.memmap(self.folder / VECTORS, "<f4", "c", shape=(self._rows, self.dimensions))
        return mapped.view(np.ndarray)

    def _damage(self, one: Any) -> bool:
        if not journal.is_intact(one):
            return True
        if zlib.crc32(self._bytes(one)) != one["items"]:
            return True
        if one["kind"] != ADDED:
            return False
        return bool(zlib.crc32(self._raw(one)) != one["vectors"])

    def _raw(self, one: Any) -> bytes:
        width = self.dimensions * 4
        return os.pread(self._files[VECTORS], int(one["rows"]) * width, int(one["first"]) * width)

    def _told(self, one: Any) -> str:
        if not journal.is_intact(one):
            return "a record of the journal is damaged"
        if one["kind"] == DELETED:
            return "a deletion is damaged"
        return f"images {int(one['first'])} to {int(one['first'] + one['rows']) - 1} are damaged: their checksum is wrong"

    def _bytes(self, one: Any) -> bytes:
        return os.pread(self._files[ITEMS], int(one["length"]), int(one["offset"]))

    def _item(self, row: int) -> tuple[str, dict[str, Any]]:
        place = int(np.searchsorted(self._starts, row, side="right")) - 1
        if place not in self._lines:
            self._lines[place] = self._bytes(self._records[self._added[place]]).split(b"\n")
        id, metadata = json.loads(self._lines[place][row - int(self._starts[place])])
        return id, metadata

    def _places(self) -> dict[str, int]:
        """id -> row, of what is not deleted."""
        self._catch_up()
        if self._index is None:
            self._vectors()  # checked first
            rows = (row for row in range(self._rows) if row not in self._dead)
            self._index = {self._item(row)[0]: row for row in rows}
        return self._index

    def _alive(self) -> NDArray[np.bool_]:
        alive = np.ones(self._rows, bool)
        alive[list(self._dead)] = False
        return alive

    def _allowed(self, where: Filter | None) -> torch.Tensor | None:
        if where is None and not self._dead:
            return None
        alive = self._alive()
        if where is not None:
            self._vectors()
            for row in np.flatnonzero(alive).tolist():
                alive[row] = where(self._item(row)[1])
        return torch.from_numpy(alive)


def _write(file: int, content: bytes | memoryview, offset: int) -> None:
    """All of it, and on the disk."""
    rest = memoryview(content)
    while len(rest):
        written = os.pwrite(file, rest, offset)
        rest, offset = rest[written:], offset + written
    os.ftruncate(file, offset)  # what a crash left behind it
    os.fsync(file)
