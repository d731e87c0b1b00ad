"""Where pictures come from: a folder, a zip or a tar file, all read in the same way and never unpacked."""

from __future__ import annotations

import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from rankshot.files import check_plain, opened, read_whole

from .budget import MOST_BYTES
from .unpacking import PART, Unpacked, check_budget, check_directory, looks_like_tar

NOT_OURS = ("__MACOSX/",)  # what other programs leave in archives
ENCRYPTED, LOCAL_HEADER = 1, 30  # of a zip: a flag, and the bytes before an entry
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, LookupError, struct.error, OSError)
TAR_ERRORS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, LookupError, OverflowError, OSError)
MOST_TIMES = 100  # a folder is entered by links: two in each of thirty that lead to the next are a billion ways


class Tree(Protocol):
    """Files by their names, which are relative and use slashes."""

    path: Path
    damaged: dict[str, str]  # names that are there but cannot be reached, and why

    def names(self) -> list[str]:
        """All files, sorted; hidden ones left out."""
        ...

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """The content of some of them, in the order that is fastest; an error where one cannot be read."""
        ...


def open_tree(path: Path) -> Tree:
    """A folder, a zip, or a tar file of any compression."""
    if path.is_dir():
        return FolderTree(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    check_plain(path, follow=True)
    if zipfile.is_zipfile(path):
        return ZipTree(path)
    if path.suffix == ".zip":
        raise ValueError(f"{path} is damaged or cut short: it is no complete zip file")
    if looks_like_tar(path):
        return TarTree(path)
    raise ValueError(f"{path} is neither a folder nor a zip or tar file that can be read")


def _listed(path: Path, entries: list[str]) -> list[str]:
    """Names of an archive, checked and sorted."""
    for name, count in Counter(entries).items():
        _check_inside(path, name)
        if count > 1:
            raise ValueError(f"{path} is refused: it holds {name!r} {count} times")
    return sorted(name for name in entries if _wanted(name))


class Refused(OSError):
    """A file that is not read from where it is."""


def _too_large(size: int) -> Refused:
    return Refused(f"{size:,} bytes are no image")


def _wanted(name: str) -> bool:
    return not name.startswith(NOT_OURS) and not any(part.startswith(".") for part in PurePosixPath(name).parts)


def _check_inside(path: Path, name: str) -> None:
    """We unpack nothing, but an archive that tries to reach outside deserves no trust at all."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"{path} is refused: its entry {name!r} points outside")


class FolderTree:
    """Files below a folder. Links are followed, but never back into a folder above, so that loops end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[str, str] = {}

    def names(self) -> list[str]:
        return sorted(self._walk())

    def _walk(self) -> Iterator[str]:
        """Without recursion: folders may lie deeper within each other than Python can go."""
        waiting: list[tuple[str, str, tuple[tuple[int, int], ...]]] = [(os.fspath(self.path), "", ())]
        entered: Counter[tuple[int, int]] = Counter()
        while waiting:
            folder, prefix, above = waiting.pop()
            try:
                status = os.stat(folder)
                here = (status.st_dev, status.st_ino)
                entered[here] += 1
                if here in above or entered[here] > MOST_TIMES:
                    loops = "a link that leads back into its own folder"
                    self.damaged[prefix.rstrip("/")] = loops if here in above else "a folder that too many links lead to"
                    continue
                with os.scandir(folder) as entries:
                    visible = [entry for entry in entries if not entry.name.startswith(".")]
            except OSError as error:
                if not prefix:
                    raise
                self.damaged[prefix.rstrip("/")] = error.strerror or str(error)
                continue
            for entry in visible:
                name = prefix + entry.name
                try:
                    entry.stat()
                except OSError as error:
                    self.damaged[name] = error.strerror or str(error)
                    continue
                if entry.is_dir():
                    waiting.append((entry.path, name + "/", (*above, here)))
                elif entry.is_file():
                    yield name
                else:
                    self.damaged[name] = "neither a file nor a folder"

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        for name in names:
            try:
                yield name, read_whole(self.path / name, MOST_BYTES, follow=True)
            except OSError as error:
                yield name, error


class ZipTree:
    """The entries of a zip file. What its headers say is never believed: they bound what is read, and no more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[str, str] = {}
        check_directory(path)
        try:
            self.zip = zipfile.ZipFile(path)
            entries = self.zip.infolist()
        except ZIP_ERRORS as error:
            raise ValueError(f"{path} is damaged or cut short: {error}") from None
        check_budget(path, sum(entry.file_size for entry in entries))
        _check_apart(path, entries)

    def names(self) -> list[str]:
        return _listed(self.path, [entry.filename for entry in self.zip.infolist() if not entry.filename.endswith("/")])

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        for name in names:
            try:
                yield name, self._read(self.zip.getinfo(name))
            except ZIP_ERRORS as error:
                yield name, error if isinstance(error, Refused) else OSError(f"damaged in the zip: {error}")

    def _read(self, entry: zipfile.ZipInfo) -> bytes:
        if entry.flag_bits & ENCRYPTED:
            raise Refused("it is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused("it is packed in a way that is not read from a zip: only stored and deflated files are")
        if entry.file_size > MOST_BYTES:
            raise _too_large(entry.file_size)
        with self.zip.open(entry) as file:
            return file.read(entry.file_size + 1)


def _check_apart(path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Entries that share their bytes unpack to much more than the file is large."""
    end = 0
    for entry in sorted(entries, key=lambda info: info.header_offset):
        if entry.header_offset < end:
            raise ValueError(f"{path} is refused: its entry {entry.filename!r} overlaps with another one")
        end = entry.header_offset + LOCAL_HEADER + entry.compress_size


class TarTree:
    """The entries of a tar file, compressed or not, which is read from end to end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[str, str] = {}

    def names(self) -> list[str]:
        if not self._has_an_end():
            raise ValueError(f"{self.path} is damaged or cut short: it has no end")
        return _listed(self.path, [_plain_name(member) for member, _ in self._members()])

    def _has_an_end(self) -> bool:
        """A tar ends in zeros; one that is cut between two files looks fine otherwise. Compression checks itself."""
        with opened(self.path, follow=True) as file:
            if file.read(262)[257:] != b"ustar":
                return True  # compressed, or too old to tell
            file.seek(-1024, os.SEEK_END)
            return not any(file.read())

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        wanted = set(names)
        for member, content in self._members():
            name = _plain_name(member)
            if name in wanted:
                yield name, _too_large(member.size) if member.size > MOST_BYTES else content()

    def _members(self) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes]]]:
        """Each plain file, and what reads it, before the next is asked for."""
        try:
            with Unpacked(self.path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
                while (member := stream.next_of(archive)) is not None:
                    archive.members.clear()  # type: ignore[attr-defined]  # of which it would keep all
                    if member.isreg() and member.sparse is None:
                        yield member, partial(_content, archive, stream, member)
                    elif member.isreg():
                        self.damaged[member.name] = "a file with holes, which is not read from a tar file"
                    elif member.islnk() or member.issym():
                        self.damaged[member.name] = "a link, which is not followed in a tar file"
                while stream.read(PART):  # to its end, where compression tells whether all was right
                    pass
        except TAR_ERRORS as error:
            raise ValueError(f"{self.path} is damaged or cut short: {error}") from None


def _content(archive: tarfile.TarFile, stream: Unpacked, member: tarfile.TarInfo) -> bytes:
    with stream.allowing(MOST_BYTES):
        file = archive.extractfile(member)
        assert file is not None
        return file.read()


def _plain_name(member: tarfile.TarInfo) -> str:
    return member.name.removeprefix("./")
