"""Tensors in a file, with notes and a checksum of every byte. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

from .files import check_plain, opened, write_whole
from .schema import checked, parsed

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)


class Entry(TypedDict):
    """What a header tells of a tensor, as far as it concerns us."""

    data_offsets: tuple[int, int]


# Two notes, so that no single bit that changes makes a file look as if it never had a checksum.
CHECKSUM = {"checksum": "sha256", "sha256": "0" * 64}
CLAIM, DIGEST = b'"checksum":"sha256"', re.compile(rb'"sha256":"([0-9a-f]{64})"')
MOST_HEADER = 2**26  # bytes: of a file with a million tensors
CHECKED: dict[tuple[int, int], tuple[int, int]] = {}  # which files were found intact: (device, inode) -> size and time


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """All of them in one file, with notes, whole or not at all."""
    _check_installed()
    from safetensors.torch import save

    content = save(_apart(tensors), {**notes, **CHECKSUM})
    start, end = _checksum_span(content[: 8 + int.from_bytes(content[:8], "little")])
    digest = hashlib.sha256(content).hexdigest().encode()
    write_whole(path, content[:start] + digest + content[end:])


def _check_installed() -> None:
    """The losses need no files, and so not all who have rankshot have what writes them."""
    if find_spec("safetensors") is None:
        raise ImportError("weights are kept by safetensors, which is not here: pip install 'rankshot[train]'")


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, each with memory of its own: layers may share their weights, which safetensors does not write."""
    alone, taken = {}, set()
    for name, tensor in tensors.items():
        alone[name] = tensor.detach().cpu().contiguous()
        if (memory := alone[name].untyped_storage().data_ptr()) in taken and alone[name].numel():
            alone[name] = alone[name].clone()
        taken.add(memory)
    return alone


def read_tensors(path: Path, *, is_ours: bool = True) -> dict[str, Tensor]:
    """The tensors that `write_tensors` wrote; or of a safetensors file of another program, which has no checksum."""
    with _opened(path, is_ours) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dictionary


def read_notes(path: Path) -> dict[str, str]:
    """The notes that `write_tensors` wrote."""
    with _opened(path) as file:
        notes: dict[str, str] = file.metadata() or {}
    return {name: note for name, note in notes.items() if name not in CHECKSUM}


@contextmanager
def _opened(path: Path, is_ours: bool = True) -> Iterator[Any]:
    _check_installed()
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    check_intact(path, is_ours=is_ours)
    try:
        with _in_utf8(path) as name, safe_open(name, framework="pt") as file:
            yield file
    except (SafetensorError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged or cut short: {error}") from None


@contextmanager
def _in_utf8(path: Path) -> Iterator[Path | str]:
    """A name for a file, since safetensors takes none that is not UTF-8."""
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        pass
    else:
        yield path
        return
    with opened(path) as file:
        yield f"/dev/fd/{file.fileno()}"


def check_intact(path: Path, *, is_ours: bool = True) -> None:
    """Compare a file with its checksum; once in a process, as long as its size and time stay."""
    check_plain(path)
    with opened(path) as file:
        status = os.fstat(file.fileno())
        key, stamp = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        if CHECKED.get(key) == stamp:
            return
        _check(path, file, status.st_size, is_ours)
        CHECKED[key] = stamp


def _check(path: Path, file: BinaryIO, size: int, is_ours: bool) -> None:
    length = file.read(8)
    header_size = int.from_bytes(length, "little")
    if len(length) < 8 or header_size > min(size - 8, MOST_HEADER):
        raise ValueError(f"{path} is damaged or cut short: it is no safetensors file")
    header = length + file.read(header_size)
    if (end := _end_of_data(header[8:])) != size - len(header):
        raise ValueError(f"{path} is damaged or cut short: {size - len(header)} bytes of tensors instead of {end}")
    is_claimed, recorded = CLAIM in header, DIGEST.findall(header)
    if not is_claimed and not recorded:
        if is_ours:
            log.info("%s has no checksum: it was not written by this version of rankshot", path)
        return
    if not is_claimed or len(recorded) != 1:
        raise ValueError(f"{path} is damaged or cut short: its checksum is not whole")
    start, end = _checksum_span(header)
    digest = hashlib.sha256(header[:start] + CHECKSUM["sha256"].encode() + header[end:])
    while part := file.read(2**20):
        digest.update(part)
    if digest.hexdigest().encode() != recorded[0]:
        raise ValueError(f"{path} is damaged or cut short: its checksum is not that of what was written")


def _end_of_data(header: bytes) -> int | None:
    """How many bytes of tensors a header tells of; None: it is none."""
    try:
        entries = parsed(header, dict[str, dict[str, Any]], "the header")
        ends = [checked(entry, Entry, name)["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
    except ValueError:
        return None
    return max(ends, default=0)


def _checksum_span(header: bytes) -> tuple[int, int]:
    """Where in a header the checksum is."""
    match = DIGEST.search(header)
    assert match is not None
    return match.span(1)
