"""Where pictures come from: a folder, a zip or a tar file, all read in the same way and never unpacked."""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol

NOT_OURS = ("__MACOSX/",)  # what other programs leave in archives
MOST_BYTES = 2**29  # of one file: an image is never that large, a bomb is


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
    if zipfile.is_zipfile(path):
        return ZipTree(path)
    if path.suffix == ".zip":
        raise ValueError(f"{path} is damaged or cut short: it is no complete zip file")
    if tarfile.is_tarfile(path):
        return TarTree(path)
    raise ValueError(f"{path} is neither a folder nor a zip or tar file that can be read")


def _listed(path: Path, entries: list[str]) -> list[str]:
    """Names of an archive, checked and sorted."""
    for name, count in Counter(entries).items():
        _check_inside(path, name)
        if count > 1:
            raise ValueError(f"{path} is refused: it holds {name!r} {count} times")
    return sorted(name for name in entries if _wanted(name))


def _too_large(size: int) -> OSError:
    return OSError(f"{size:,} bytes are no image")


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
        return sorted(self._walk(self.path, "", ()))

    def _walk(self, folder: Path, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
        status = folder.stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            self.damaged[prefix.rstrip("/")] = "a link that leads back into its own folder"
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.name.startswith("."):
                    continue
                try:
                    entry.stat()
                except OSError as error:
                    self.damaged[name] = error.strerror or str(error)
                    continue
                if entry.is_dir():
                    yield from self._walk(Path(entry.path), name + "/", (*above, here))
                elif entry.is_file():
                    yield name
                else:
                    self.damaged[name] = "neither a file nor a folder"

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        for name in names:
            try:
                size = (self.path / name).stat().st_size
                yield name, _too_large(size) if size > MOST_BYTES else (self.path / name).read_bytes()
            except OSError as error:
                yield name, error


class ZipTree:
    """The entries of a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[str, str] = {}
        try:
            self.zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is damaged or cut short: {error}") from None

    def names(self) -> list[str]:
        return _listed(self.path, [entry.filename for entry in self.zip.infolist() if not entry.is_dir()])

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        for name in names:
            size = self.zip.getinfo(name).file_size
            try:
                yield name, _too_large(size) if size > MOST_BYTES else self.zip.read(name)
            except Exception as error:  # every way of packing has errors of its own
                yield name, OSError(f"damaged in the zip: {error}")


class TarTree:
    """The entries of a tar file, compressed or not, which is read from end to end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[str, str] = {}

    def names(self) -> list[str]:
        if not self._has_an_end():
            raise ValueError(f"{self.path} is damaged or cut short: it has no end")
        return _listed(self.path, [member.name.removeprefix("./") for member, _ in self._members()])

    def _has_an_end(self) -> bool:
        """A tar ends in zeros; one that is cut between two files looks fine otherwise. Compression checks itself."""
        with self.path.open("rb") as file:
            if file.read(262)[257:] != b"ustar":
                return True  # compressed, or too old to tell
            file.seek(-1024, os.SEEK_END)
            return not any(file.read())

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        wanted = set(names)
        for member, archive in self._members():
            name = member.name.removeprefix("./")
            if name not in wanted:
                continue
            if member.size > MOST_BYTES:
                yield name, _too_large(member.size)
                continue
            content = archive.extractfile(member)
            if content is not None:
                yield name, content.read()

    def _members(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        try:
            with tarfile.open(self.path, "r|*") as archive:
                for member in archive:
                    if member.isfile():
                        yield member, archive
                    elif member.islnk() or member.issym():
                        self.damaged[member.name] = "a link, which is not followed in a tar file"
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise ValueError(f"{self.path} is damaged or cut short: {error}") from None
