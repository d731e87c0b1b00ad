"""What a gallery on disk has acknowledged: records of fixed size, appended when the data of a change is on the disk.

A change has a record for each of its blocks, and counts when all of them are there, each with its own checksum. A crash
leaves at most one change whose records are not, the last: it was never acknowledged, and the next one takes its place.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ADDED, DELETED = 1, 2
MAGIC = b"rsg1"
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
Records = NDArray[Any]


def record(
    kind: int,
    first: int,
    rows: int,
    offset: int,
    vectors: bytes | memoryview,
    items: bytes,
    place: int = 0,
    *,
    more: bool = False,
) -> Records:
    made = np.zeros(1, RECORD)
    made["more"], made["place"] = more, place
    made["magic"], made["kind"], made["first"], made["rows"] = MAGIC, kind, first, rows
    made["offset"], made["length"] = offset, len(items)
    made["vectors"], made["items"] = zlib.crc32(vectors), zlib.crc32(items)
    made["own"] = _checksum(made[0])
    return made


def _checksum(one: Any) -> int:
    return zlib.crc32(one.tobytes()[:-4])


def is_intact(one: Any) -> bool:
    return bool(one["magic"] == MAGIC and one["own"] == _checksum(one))


class DamagedJournal(ValueError):
    """A whole record whose checksum is wrong: no crash leaves that behind. `intact` are those before it."""

    def __init__(self, intact: Records) -> None:
        super().__init__("a record of the journal is damaged")
        self.intact = intact


def read(path: Path) -> Records:
    """All records but those of a last change that was cut short. These alone are checked now, others when used."""
    content = path.read_bytes()
    records = np.frombuffer(content[: len(content) // RECORD.itemsize * RECORD.itemsize], RECORD)
    while len(records):
        start = len(records) - 1 - (int(records[-1]["place"]) if is_intact(records[-1]) else 0)  # of the last change
        change = records[max(0, start) :]
        are_all = start >= 0 and np.array_equal(change["place"], np.arange(len(change))) and not change[-1]["more"]
        if are_all and all(is_intact(each) for each in change):
            break
        if any(not is_intact(each) and any(each.tobytes()) for each in change):  # nothing but zeros was never written
            raise DamagedJournal(records)
        records = records[: max(0, start)]
    return records


def append(file: int, records: Records, made: Sequence[Records]) -> Records:
    """The records of one change, after those that count: when this returns, they do too."""
    added = np.concatenate(made)
    os.pwrite(file, added.tobytes(), records.nbytes)
    os.ftruncate(file, records.nbytes + added.nbytes)
    os.fsync(file)
    return np.concatenate([records, added])
