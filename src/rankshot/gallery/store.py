"""What keeps the vectors of a gallery: one contract, several places."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankshot.registry import Registry

Vectors = NDArray[np.float32]
Metadata = Mapping[str, Any]
Filter = Callable[[Metadata], bool]
LONGEST_ID = 8192  # characters: a path
LONGEST_METADATA = 2**20  # characters of an image's, as JSON
ENCODER = json.JSONEncoder(allow_nan=False)


class Hit(NamedTuple):
    """An image that was found.

    Attributes:
        id: of the image.
        similarity: its cosine with the query.
        metadata: of the image.

    Examples:
        >>> from rankshot import Gallery
        >>> gallery = Gallery(dimensions=2)
        >>> added = gallery.add([[1.0, 0.0], [0.0, 1.0]], ids=["right", "up"], metadata=[{"side": "x"}, {"side": "y"}])
        >>> hit = gallery.search([0.6, 0.8], k=1)[0]
        >>> hit.id, round(hit.similarity, 4), hit.metadata
        ('up', 0.8, {'side': 'y'})
    """

    id: str
    similarity: float
    metadata: dict[str, Any]


class Damaged(ValueError):
    """The files of a gallery are not what was written. `rankshot gallery rescue` saves what is intact.

    Examples:
        >>> from pathlib import Path
        >>> from rankshot.gallery import Damaged, Gallery
        >>> with Gallery("my.gallery", dimensions=2) as gallery:
        ...     added = gallery.add([[1.0, 0.0]], ids=["right"])
        >>> _ = Path("my.gallery/vectors.f32").write_bytes(bytes(8))  # zeros in place of the vector
        >>> try:
        ...     Gallery.open("my.gallery").search([1.0, 0.0])
        ... except Damaged as error:
        ...     print("their checksum is wrong" in str(error))
        True
    """


class Source(NamedTuple):
    """The file that a vector was made of, as it was then: bytes, time of its last change in nanoseconds, SHA-256."""

    size: int
    time: int
    digest: str


class Chunk(NamedTuple):
    """Some of what is in a gallery; vectors are (n, D)."""

    ids: list[str]
    vectors: Vectors
    metadata: list[dict[str, Any]]
    sources: list[Source | None]


class Store(Protocol):
    """Vectors of length 1 under unique ids, each with metadata. What a call has acknowledged outlives the process.

    All calls may come from several threads at once, and from several processes that have opened the same place (a file of
    milvus-lite can be open in one process alone). A search sees what was there at one moment: a change of others, or of
    another thread, is in it whole or not at all.
    """

    about: dict[str, Any]
    dimensions: int

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def add(
        self,
        vectors: Vectors,
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sources: Sequence[Source | None] | None = None,
        *,
        replace: bool = False,
    ) -> list[str]:
        """All of them or, where something is wrong, none; returns their ids.

        ids      None: the next number that is free
        sources  the files that they were made of, where they were
        replace  ids that are there already get these vectors and metadata instead
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """All of them or, where one is unknown, none."""
        ...

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = False) -> list[list[Hit]]:
        """For each query the nearest, the nearest first; fewer than k where there are not so many.

        exactly   also where it is approximate as a rule
        """
        ...

    def vector(self, id: str) -> Vectors:
        """(D,)."""
        ...

    def metadata(self, id: str) -> dict[str, Any]: ...

    def sources(self, ids: Sequence[str]) -> dict[str, Source | None]:
        """Of those that are there: the file that each was made of, where that is known."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """Everything that is there, part by part."""
        ...

    def verify(self) -> list[str]:
        """What is damaged, if anything."""
        ...

    def close(self) -> None: ...


def check_ids(ids: Sequence[str | None]) -> None:
    """Ids must be strings, each once; None stands for a number to be chosen."""
    seen: set[str] = set()
    for id in ids:
        if id is None:
            continue
        if not isinstance(id, str) or not id:
            raise TypeError(f"an id must be a string that is not empty, got {id!r}")
        if len(id) > LONGEST_ID:
            raise ValueError(f"an id may have {LONGEST_ID} characters, got {len(id)}: {id[:40]!r}…")
        if id in seen:
            raise ValueError(f"id {id!r} is given twice")
        seen.add(id)


def encoded(metadata: Iterable[Metadata]) -> list[str]:
    """As JSON, a text each."""
    return [_encoded(dict(note)) if note else "{}" for note in metadata]


def _encoded(note: dict[str, Any]) -> str:
    if not all(type(name) is str for name in note):  # JSON would make texts of numbers, and two names one
        raise ValueError(f"metadata must be what JSON can hold, with texts as names, got {reprlib.repr(list(note))}")
    try:
        text = ENCODER.encode(note)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must be what JSON can hold, got {reprlib.repr(note)}: {error}") from None
    if len(text) > LONGEST_METADATA:
        raise ValueError(f"metadata may have {LONGEST_METADATA:,} characters as JSON, got {len(text):,}: {text[:100]}…")
    return text


def decoded(note: str | bytes) -> dict[str, Any]:
    """Metadata from its JSON, for every row of a gallery: so no more is looked at than must be."""
    try:
        metadata = json.loads(note)
    except (TypeError, ValueError, RecursionError) as error:
        raise Damaged(f"the metadata of an image are damaged: {error}") from None
    if not isinstance(metadata, dict):
        raise Damaged(f"the metadata of an image are damaged: they must be an object, got {str(metadata)[:60]}")
    return metadata


def there_already(id: str) -> ValueError:
    return ValueError(
        f"id {id!r} is in the gallery already: add it with replace=True, delete it first, or choose another id"
    )


class NotAnswering(ConnectionError):
    """A store on a server that is away."""


class CannotKeep(ValueError):
    """Metadata that a store has no place for."""


# Stores of one's own, by name: a class whose `create(place, dimensions, about)` makes a new one, and which opens what is at
# a place that is there, Store(place) (FileNotFoundError: it is not). A gallery at NAME:PLACE is kept by it.
SCHEMES = ("faiss", "http", "https", "tcp")  # what stands in front of the colon where a store of rankshot's own is meant
STORES = Registry("gallery store", about={}, taken=lambda name: name.lower() in (*SCHEMES, "local", "milvus"))
register = STORES.register


class UnknownId(KeyError, ValueError):
    """Nothing in the gallery has this id."""

    def __init__(self, id: str, count: int) -> None:
        super().__init__(f"there is no {id!r} among the {count} images of the gallery")

    def __str__(self) -> str:
        return str(self.args[0])
