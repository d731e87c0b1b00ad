"""The vectors of a gallery: one file of float32 that only grows, written by `write` and mapped only to be read.

Who writes holds the database's lock, writes behind the rows that count, waits for the disk, and then commits the rows. What
a crash leaves behind those is overwritten by the next. Written through a map, a full disk would end the process.
"""

from __future__ import annotations

import mmap
import os
import re
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.files import BINARY, NO_LINK, check_own, check_plain, named, opened, wait_for_folder, write_all

from .store import Damaged, Vectors

SEGMENT = "vectors.f32"
REBUILT = re.compile(r"vectors-[0-9a-f]{8}\.f32")  # what it is called in a gallery that was rebuilt
ROWS_OF_A_BLOCK = 4096  # which has a checksum of its own: so much is lost with one wrong byte
Block = tuple[int, int, int]  # first row, rows, checksum


class Segment:
    """Rows of `dimensions` numbers each in a folder."""

    def __init__(self, folder: Path, dimensions: int, name: str = SEGMENT) -> None:
        self.path = folder.absolute() / name
        self.width = 4 * dimensions
        self.dimensions = dimensions
        self._mapped: Vectors = np.zeros((0, dimensions), np.float32)

    def write(self, vectors: NDArray[np.float32], first: int) -> list[Block]:
        """Into the rows from `first` on, and onto the disk; nobody else may be writing."""
        check_own(self.path)
        is_new = not self.path.exists()
        with named(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY | NO_LINK, 0o666)
            with os.fdopen(handle, "r+b", buffering=0) as file:
                check_plain(self.path)
                file.seek(first * self.width)
                write_all(file, vectors.data.cast("B") if len(vectors) else b"")
                os.fsync(file.fileno())
        if is_new:
            wait_for_folder(self.path.parent)
        starts = range(0, len(vectors), ROWS_OF_A_BLOCK)
        blocks = [(start, vectors[start : start + ROWS_OF_A_BLOCK]) for start in starts]
        return [(first + start, len(block), zlib.crc32(block.data)) for start, block in blocks]

    def rows(self, count: int) -> Vectors:
        """The first `count` rows, mapped."""
        mapped = self._mapped
        if len(mapped) < count:
            mapped = self._map(count)
            self._mapped = mapped
        return mapped[:count]

    def _map(self, count: int) -> Vectors:
        with opened(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < count * self.width:
                raise Damaged(f"{self.path} is cut short: {count} vectors need {count * self.width} bytes, it has {size}")
            whole = mmap.mmap(file.fileno(), count * self.width, access=mmap.ACCESS_COPY)  # torch warns of one for reading
        return np.frombuffer(whole, "<f4").reshape(count, self.dimensions)

    def is_intact(self, block: Block) -> bool:
        first, rows, checksum = block
        return zlib.crc32(np.ascontiguousarray(self.rows(first + rows)[first:]).data) == checksum
