"""Archives within bounds: whatever their headers claim, so much is unpacked and so much is in memory, and no more."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self

from rankshot.files import opened

RATIO, SLACK = 100, 2**28  # an archive unpacks to so many times its size at most, and so many bytes more
MOST_DIRECTORY = 2**26  # bytes that list the files of a zip, which are in memory as objects: half a million names
MOST_HEADER = 2**20  # bytes of one header of a tar, long names and the like
LZMA_MEMORY = 2**27  # bytes: a dictionary may ask for four gigabytes
PART = 2**16


class Decompressor(Protocol):
    """bz2's and lzma's, and zlib's made alike."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Deflated:
    """zlib's decompressor of gzip files, with the manners of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail and not self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max(0, max_length))


KINDS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": Deflated,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LZMA_MEMORY),
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=LZMA_MEMORY),
}


def check_budget(path: Path, size: int) -> None:
    """An archive that unpacks to `size` bytes, or says so."""
    if size > RATIO * path.stat().st_size + SLACK:
        raise ValueError(f"{path} is refused: it unpacks to more than {RATIO} times its size")


def check_directory(path: Path) -> None:
    """Complain of a zip that lists more files than should be in memory at once."""
    with opened(path, follow=True) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 2**16 - 98))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    size = struct.unpack_from("<L", tail, end + 12)[0] if 0 <= end <= len(tail) - 22 else 0
    large = tail.rfind(b"PK\x06\x06", 0, max(0, end))  # of a zip past four gigabytes
    if 0 <= large <= len(tail) - 56:
        size = max(size if size != 0xFFFFFFFF else 0, struct.unpack_from("<Q", tail, large + 40)[0])
    if size > MOST_DIRECTORY:
        raise ValueError(f"{path} holds more files than are read from one zip: unpack it into a folder")


def looks_like_tar(path: Path) -> bool:
    """Whether a file, unpacked, begins with a header of tar."""
    try:
        with Unpacked(path) as stream:
            tarfile.TarInfo.frombuf(stream.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError, EOFError, OSError, zlib.error, lzma.LZMAError):
        return False
    return True


class Unpacked(io.RawIOBase):
    """What a tar file holds, unpacked on the way: to be read forwards, no more at a time than is allowed."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, opened(path, follow=True)
        self._most, self._position, self._last = MOST_HEADER, 0, b""
        self._header_left: int | None = (
            MOST_HEADER  # bytes that may still tell about an entry: tarfile looks for the first by itself
        )
        start = self._file.read(6)
        self._file.seek(0)
        self._kind = next((kind for magic, kind in KINDS.items() if start.startswith(magic)), None)
        self._unpacking: Decompressor | None = None if self._kind is None else self._kind()
        self._budget = RATIO * os.fstat(self._file.fileno()).st_size + SLACK

    def __enter__(self) -> Self:
        return self

    @contextmanager
    def allowing(self, most: int) -> Iterator[None]:
        """More at a time, for a while."""
        before, self._most = self._most, max(self._most, most)
        try:
            yield
        finally:
            self._most = before

    def next_of(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        """Its next entry. All that tells about one is bounded: a map of holes has as many parts as it says."""
        self._header_left = MOST_HEADER
        try:
            return archive.next()
        finally:
            self._header_left = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self._most or (self._header_left is not None and size > self._header_left):
            raise tarfile.ReadError("a header claims more than any has")
        if self._header_left is not None:
            self._header_left -= size
        parts, left = [], size
        if self._last and left and self._is_back:
            parts, left, self._is_back = [self._last], left - 1, False
        while left and (part := self._some(left)):
            parts.append(part)
            left -= len(part)
        content = b"".join(parts)
        self._position, self._last = self._position + len(content), content[-1:] or self._last
        return content

    _is_back = False  # whether the last byte is to be read again

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Forwards, as far as there is something; or back by one byte, as tarfile does."""
        if self._unpacking is None and not self._is_back:
            self._position = self._file.seek(position)
            self._last = b""
        elif position == self._position - 1 and self._last and not self._is_back:
            self._position, self._is_back = position, True
        elif position < self._position:
            raise tarfile.ReadError("it is to be read backwards")
        header_left, self._header_left = self._header_left, None  # what is passed over tells nothing
        while self._position < position and self.read(min(PART, position - self._position)):
            pass
        self._header_left = header_left
        return self._position

    def _some(self, most: int) -> bytes:
        """Some of the next bytes; none at the end."""
        if self._unpacking is None:
            return self._file.read(most)
        while True:
            if self._unpacking.eof:
                rest = self._unpacking.unused_data or self._file.read(PART)
                if not rest.strip(b"\0"):
                    return b""  # padding, perhaps
                assert self._kind is not None
                self._unpacking = self._kind()  # another stream behind the first
            else:
                rest = self._file.read(PART) if self._unpacking.needs_input else b""
                if not rest and self._unpacking.needs_input:
                    raise EOFError("it ends before its end")
            part = self._unpacking.decompress(rest, min(most, PART))
            if part:
                self._budget -= len(part)
                if self._budget < 0:
                    raise ValueError(f"it unpacks to more than {RATIO} times its size")
                return part

    def close(self) -> None:
        self._file.close()
        super().close()
