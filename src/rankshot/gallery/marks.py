"""What people say of what was found: right, or wrong. Kept in the metadata of what was looked for, as lists of ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .store import Metadata, Store, UnknownId

RIGHT, WRONG = "right", "wrong"


class Pairs(NamedTuple):
    """Marks as pairs of rows, each once; and how many are of images that are there no more."""

    alike: list[tuple[int, int]]
    unlike: list[tuple[int, int]]
    gone: int


def mark(store: Store, id: str, right: str | Iterable[str] = (), wrong: str | Iterable[str] = ()) -> None:
    """See `Gallery.mark`."""
    said = {RIGHT: _listed(right), WRONG: _listed(wrong)}
    others = [*said[RIGHT], *said[WRONG]]
    if not others:
        raise ValueError("give ids that were right, or wrong")
    if id in others:
        raise ValueError(f"{id!r} cannot be marked with itself")
    for other in said[RIGHT]:
        if other in said[WRONG]:
            raise ValueError(f"{other!r} cannot be both right and wrong")
    # First: an image that is replaced meanwhile keeps a source that no longer fits, and so is noticed as changed.
    sources = store.sources([id, *others])
    for name in (id, *others):
        if name not in sources:
            raise UnknownId(name, len(store))
    before = {name: store.metadata(name) for name in (id, *others)}
    after = {id: _said(before[id], id, said)}
    for other in others:  # what the other one was told of this one counts no more, where it says the opposite
        opposite = WRONG if other in said[RIGHT] else RIGHT
        after[other] = _with(
            before[other], opposite, [each for each in marked(before[other], opposite, other) if each != id]
        )
    changed = [name for name, note in after.items() if note != before[name]]
    if changed:
        vectors = np.stack([store.vector(name) for name in changed])
        store.add(vectors, changed, [after[name] for name in changed], [sources[name] for name in changed], replace=True)


def marked(note: Metadata, name: str, id: str) -> list[str]:
    """The ids that an image's metadata hold under a name."""
    ids = note.get(name, [])
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise ValueError(f"the marks of {id!r} must be a list of ids, its metadata {name!r} are {str(ids)[:60]!r}")
    return ids


def pairs_in(ids: Sequence[str], metadata: Sequence[Metadata], right: str = RIGHT, wrong: str = WRONG) -> Pairs:
    """Of all images of a gallery: whoever was looked for, the two are alike, or they are not."""
    rows = {id: row for row, id in enumerate(ids)}
    told: dict[tuple[int, int], bool] = {}
    gone = 0
    for row, (id, note) in enumerate(zip(ids, metadata, strict=True)):
        for name, is_right in ((right, True), (wrong, False)):
            for other in marked(note, name, id):
                if other not in rows:
                    gone += 1
                    continue
                pair = min(row, rows[other]), max(row, rows[other])
                if pair[0] == pair[1] or told.setdefault(pair, is_right) != is_right:
                    raise ValueError(f"{id!r} and {other!r} are marked as right and as wrong: mark them anew")
    alike, unlike = ([pair for pair, is_right in told.items() if is_right is kind] for kind in (True, False))
    return Pairs(alike, unlike, gone)


def _listed(ids: str | Iterable[str]) -> list[str]:
    return [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))


def _said(note: Metadata, id: str, said: Mapping[str, list[str]]) -> dict[str, Any]:
    """With what is said now, and what was said of others before."""
    anew, result = {*said[RIGHT], *said[WRONG]}, dict(note)
    for name in (RIGHT, WRONG):
        # In the order in which it was said first: what is said again changes nothing.
        kept = [each for each in marked(note, name, id) if each not in anew or each in said[name]]
        result = _with(result, name, list(dict.fromkeys([*kept, *said[name]])))
    return result


def _with(note: Metadata, name: str, ids: list[str]) -> dict[str, Any]:
    rest = {key: value for key, value in note.items() if key != name}
    return {**note, name: ids} if ids else rest
