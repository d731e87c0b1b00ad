"""Galleries: made, added to, deleted from; of vectors by the library, and of images by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .workloads import Disturbed, FromNothing, Tell, beside, command, errors_as_seen

DIMENSIONS = 8
COUNTS = (1, 3, 7, 2, 5, 1200, 4)  # of images in one addition


def is_deletion(number: int) -> bool:
    return number % 4 == 3


def ids_of(number: int) -> list[str]:
    return [f"{number}-{index}" for index in range(COUNTS[number % len(COUNTS)])]


def vectors_of(number: int) -> Any:
    return np.random.default_rng(number).normal(size=(len(ids_of(number)), DIMENSIONS)).astype(np.float32)


def notes_of(number: int) -> list[dict[str, Any]]:
    return [
        {"from": number, "place": index, "colour": "red" if index % 2 else "blue"} for index in range(len(ids_of(number)))
    ]


def deleted_by(number: int) -> list[str]:
    """Half of what the addition before it has brought."""
    return ids_of(number - 1)[::2]


class Vectors(FromNothing):
    """Additions and deletions by number, without end or `length` of them.

    Told are "begins N" before and "done N" or "failed N" after each; an object whose call has failed goes on with the next.
    """

    room = 400_000

    def __init__(self, length: int | None, kind: str = "") -> None:
        self.length, self.kind = length, kind
        self.is_endless = length is None
        self.name = f"gallery of vectors {kind}".strip() + (f", {length} changes" if length else "")

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        from rankshot.gallery import Gallery

        number = 1 + max((int(line.split()[1]) for line in before if line.startswith("begins")), default=-1)
        is_new = "created" not in before
        where = f"{self.kind}{place}"
        with errors_as_seen():
            gallery = _opened(where) if not is_new or place.exists() else Gallery(where, dimensions=DIMENSIONS)
        tell("created")
        failed: Disturbed | None = None
        last = number + self.length if self.length is not None else None
        while last is None or number < last:
            tell(f"begins {number}")
            try:
                with errors_as_seen():
                    self._one(gallery, number)
                tell(f"done {number}")
            except Disturbed as error:
                tell(f"failed {number}")
                failed = error
            number += 1
        if failed is not None:
            raise failed

    def _one(self, gallery: Any, number: int) -> None:
        if not is_deletion(number):
            gallery.add(vectors_of(number), ids_of(number), notes_of(number))
            return
        ids = [id for id in deleted_by(number) if id in gallery]
        if ids:
            gallery.delete(ids)

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        where = f"{self.kind}{place}"
        if "created" not in acknowledged and not any(line.startswith("begins") for line in acknowledged):
            return [] if _made_again(where) else ["a gallery that was being made cannot be made again"]
        problems: list[str] = []
        gallery = _opened(where)
        content = _content(gallery)
        problems += wrong_in(content, acknowledged)
        if damage := gallery.store.verify():
            problems.append(f"verify finds damage: {damage[0]}")
        probe = np.full((1, DIMENSIONS), 0.5, np.float32)
        gallery.add(probe, ["probe"], [{"colour": "green"}])
        hits = gallery.search(probe[0], 1, {"colour": "green"})
        if [hit.id for hit in hits] != ["probe"]:
            problems.append(f"what was added afterwards is not found: {hits}")
        gallery.delete("probe")
        if _content(gallery).keys() != content.keys():
            problems.append("after an addition and a deletion other images are there")
        gallery.close()
        return problems


def _opened(where: str) -> Any:
    """One that is there, or was being made when its process ended."""
    from rankshot.gallery import Gallery

    try:
        return Gallery.open(where)
    except FileNotFoundError:
        return Gallery(where, dimensions=DIMENSIONS)


def _made_again(where: str) -> bool:
    gallery = _opened(where)
    gallery.add(vectors_of(0), ids_of(0))
    gallery.delete(ids_of(0)[:1])
    is_right = len(gallery) == len(ids_of(0)) - 1
    if rest := ids_of(0)[1:]:
        gallery.delete(rest)
    return is_right


def _content(gallery: Any) -> dict[str, tuple[bytes, dict[str, Any]]]:
    """id -> its vector's bits, its metadata."""
    return {
        id: (vector.tobytes(), metadata)
        for chunk in gallery.store.chunks()
        for id, vector, metadata in zip(chunk.ids, chunk.vectors, chunk.metadata, strict=True)
    }


def wrong_in(content: dict[str, tuple[bytes, dict[str, Any]]], acknowledged: Sequence[str]) -> list[str]:
    """What was acknowledged is there bit for bit, what was deleted is not, and every other change is there whole or not."""
    from rankshot.gallery import Gallery

    ends = {
        int(number): how for how, number in (line.split() for line in acknowledged if " " in line and line != "created")
    }
    problems, known = [], set[str]()
    right = Gallery(dimensions=DIMENSIONS)
    for number, how in sorted(ends.items()):
        if is_deletion(number):
            continue
        ids = ids_of(number)
        known.update(ids)
        right.add(vectors_of(number), ids, notes_of(number))
        deletion = ends.get(number + 1) if is_deletion(number + 1) else None
        removed = set(deleted_by(number + 1)) if deletion is not None else set[str]()
        stays = [id for id in ids if id not in removed]
        kept = [id for id in stays if id in content]
        if how == "done" and len(kept) < len(stays):
            problems.append(f"lost: {len(stays) - len(kept)} of {len(stays)} acknowledged images of change {number}")
        elif kept and len(kept) < len(stays):
            problems.append(f"half a change: {len(kept)} of {len(stays)} images of change {number}")
        left = [id for id in removed if id in content]
        if deletion == "done" and left:
            problems.append(f"back again: {len(left)} deleted images of change {number + 1}")
        elif left and len(left) < len(removed):
            problems.append(f"half a deletion: {len(left)} of {len(removed)} of change {number + 1} are left")
        elif how == "done" and deletion is None and len(left) < len(removed):
            problems.append(f"gone: images of change {number}")
    if strangers := content.keys() - known:
        problems.append(f"never added: {sorted(strangers)[:3]}")
    expected = _content(right)
    for id in content.keys() & known:
        if content[id] != expected[id]:
            problems.append(f"changed: {id}: {content[id][1]} instead of {expected[id][1]}")
            break
    return problems


class Pictures(FromNothing):
    """`rankshot gallery add` of a folder, from nothing; the same command again must finish it."""

    name, room = "gallery of images", 300_000

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        command("gallery", "add", str(place), beside(place, "pictures"), "--model", beside(place, "run"))
        tell("all are added")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        problems = []
        again = command("gallery", "add", str(place), beside(place, "pictures"), "--model", beside(place, "run"))
        if "all are added" in acknowledged and ": 0 added" not in again:
            problems.append(f"lost: {again.strip()}")
        from rankshot.gallery import Gallery

        one, other = (
            {Path(id).name + Path(id).parent.name: bits for id, bits in _content(Gallery.open(folder)).items()}
            for folder in (place, reference)
        )
        if one.keys() != other.keys():
            problems.append(f"{len(one)} images instead of {len(other)}")
        elif any(one[id] != other[id] for id in one):
            problems.append("other vectors than undisturbed")
        return problems
