"""What guided inputs are tried on: each target gives something, or says in its own words what is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from rankshot.data.decoding import Undecodable, decode
from rankshot.data.trees import open_tree
from rankshot.preprocess import Preprocess
from rankshot.schema import Between, Length, parsed
from rankshot.tensors import read_notes, read_tensors


class Part(TypedDict):
    """Within what `try_json` reads."""

    name: Annotated[str, Length(20)]
    size: Annotated[int, Between(1, 99)]


class Whole(TypedDict):
    """What `try_json` reads."""

    parts: list[Part]
    share: float | None
    shape: tuple[int, int, int]
    more: dict[str, Any]


def try_image(content: bytes) -> None:
    try:
        assert decode(content, Preprocess(3, 16, 16)).shape == (3, 16, 16)
    except Undecodable:
        return


def try_json(content: bytes) -> None:
    try:
        parsed(content, Whole, "input")
    except ValueError:
        return


def try_archive(content: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / "archive"
        path.write_bytes(content)
        try:
            tree = open_tree(path)
            for _, member in tree.read(tree.names()):
                assert isinstance(member, (bytes, OSError))
        except (ValueError, OSError):
            return


def try_tensors(content: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / "x.safetensors"
        path.write_bytes(content)
        for read in (read_tensors, read_notes):
            try:
                read(path)
            except (ValueError, OSError):
                continue


TARGETS: dict[str, Callable[[bytes], None]] = {
    "image": try_image,
    "json": try_json,
    "archive": try_archive,
    "tensors": try_tensors,
}


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
