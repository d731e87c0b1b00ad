"""One's own files, as they were when they were prepared: what has come, gone or changed since?

A file is taken for unchanged by its size and time. Where one of these differs its content is compared, by its hash.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import io
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from rankshot.files import digest_of, read_whole, write_whole
from rankshot.schema import Between, Length, read_json

from .budget import FILES
from .listing import is_image
from .trees import open_tree

log = logging.getLogger(__name__)

SOURCES = "sources.json"
MOST_BYTES = 2**30  # of the file: ten million images
MOST_OF_A_PICTURE = FILES.size  # larger ones are not decoded
Number = Annotated[int, Between(-(10**30), 10**30)]  # a file may be from the year 9999
State = tuple[Number, Number]  # bytes, and time of the last change in nanoseconds


class Content(TypedDict):
    """Of the file: for every source its size, its time and the SHA-256 of its content."""

    path: str
    options: dict[str, Any]
    files: dict[str, tuple[Number, Number, Annotated[str, Length(64)]]]


class Changes(NamedTuple):
    """By their names."""

    changed: list[str]
    new: list[str]
    gone: list[str]

    def __str__(self) -> str:
        """
        >>> str(Changes(["a.png", "b.png"], ["c.png"], []))
        '2 images have changed, 1 is new, 0 are gone'
        """
        changed, new, gone = map(len, self)
        have = "image has" if changed == 1 else "images have"
        return f"{changed} {have} changed, {new} {_is(new)} new, {gone} {_is(gone)} gone"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


class Files(NamedTuple):
    """What one's own images come from: names below a folder, each with its size and time."""

    base: Path
    states: dict[str, State]


def files_of(path: Path) -> Files:
    """All images of a folder; a csv with the files that it names; an archive is its own and only file."""
    base, names = (path, _images_in(path)) if path.is_dir() else (path.parent, [path.name])
    if path.suffix.lower() == ".csv" and not path.is_dir():
        names += _named_by(path)
    states: dict[str, State] = {}
    for name in names:
        with suppress(OSError, ValueError):  # what cannot be looked at is left out, also names that can be no file's
            status = os.stat(base / name)
            states[name] = (status.st_size, status.st_mtime_ns)
    return Files(base, states)


def _images_in(folder: Path) -> list[str]:
    return [name for name in open_tree(folder).names() if is_image(name)]


def _named_by(path: Path) -> list[str]:
    """Of a csv; who reads it for good complains of what is wrong with it."""
    text = read_whole(path, follow=True).decode("utf-8-sig", "replace")
    try:
        return [row["path"] for row in csv.DictReader(io.StringIO(text, newline="")) if row.get("path")]
    except csv.Error:
        return []


def fingerprint(path: Path, options: Mapping[str, Any], states: Mapping[str, State]) -> str:
    """Another one where anything has come, gone or changed."""
    content = [str(path.resolve()), dict(options), sorted(states.items())]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def write_sources(folder: Path, path: Path, options: Mapping[str, Any], files: Files) -> None:
    """Into a prepared folder: what it was made of. States are those of before it was read."""
    recorded = {name: (*state, _digest(files.base / name)) for name, state in files.states.items()}
    _write(folder, {"path": str(path.resolve()), "options": dict(options), "files": recorded})


def _write(folder: Path, content: Content) -> None:
    write_whole(folder / SOURCES, json.dumps(content) + "\n")


def earlier(root: Path, stem: str, path: Path, options: Mapping[str, Any]) -> Path | None:
    """The folder that was prepared last of the same source with the same options, if it tells what it was made of."""
    folders = []
    for folder in root.glob(f"{glob.escape(stem)}-????????"):
        content = _read(folder)
        if content is not None and (content["path"], content["options"]) == (str(path.resolve()), dict(options)):
            folders.append(folder)
    return max(folders, key=lambda folder: (folder / SOURCES).stat().st_mtime_ns, default=None)


def changes_since(folder: Path, files: Files) -> Changes:
    """What differs from when `folder` was prepared; where that are times alone, they are noted there."""
    content, states = _read(folder), files.states
    assert content is not None
    before = content["files"]
    suspicious = [name for name in states.keys() & before.keys() if tuple(before[name][:2]) != tuple(states[name])]
    changed = sorted(name for name in suspicious if _digest(files.base / name) != before[name][2])
    changes = Changes(changed, sorted(states.keys() - before.keys()), sorted(before.keys() - states.keys()))
    if suspicious and not any(changes):
        content["files"] = {name: (*states[name], before[name][2]) for name in before}
        with suppress(OSError):  # where nothing can be written, they are compared again next time
            _write(folder, content)
    return changes


def _read(folder: Path) -> Content | None:
    if not (folder / SOURCES).is_file():
        return None
    try:
        content: Content = read_json(folder / SOURCES, Content, MOST_BYTES)
    except (OSError, ValueError) as error:
        log.info("%s: what it was made of is not known", error)
        return None
    return content


def _digest(path: Path) -> str:
    """Of a file; empty where it cannot be read, which no file's is."""
    try:
        return digest_of(path, MOST_OF_A_PICTURE if is_image(path.name) else None, follow=True) or ""
    except OSError:
        return ""
