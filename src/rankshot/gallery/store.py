"""What keeps the vectors of a gallery: one contract, several places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Metadata = Mapping[str, Any]
Filter = Callable[[Metadata], bool]
SAYABLE = re.compile(r"[^\"\'\\\x00-\x1f]*")  # without quotes and the like


class Wanted:
    """A filter that names values: every one of these must be there, as it is or as one of a list."""

    def __init__(self, where: Mapping[str, Any]) -> None:
        self.values = {name: list(each) if isinstance(each, (list, tuple, set)) else [each] for name, each in where.items()}

    def __call__(self, metadata: Metadata) -> bool:
        return all(name in metadata and metadata[name] in values for name, values in self.values.items())

    @property
    def expression(self) -> str | None:
        """As Milvus has it; None: it cannot say this."""
        told = [*self.values, *(value for values in self.values.values() for value in values)]
        plain = all(type(each) in (int, float, bool) or (type(each) is str and SAYABLE.fullmatch(each)) for each in told)
        if not plain or not self.values or not all(self.values.values()):
            return None
        return " and ".join(
            "(" + " or ".join(f"metadata[{json.dumps(name)}] == {json.dumps(value)}" for value in values) + ")"
            for name, values in self.values.items()
        )


class Hit(NamedTuple):
    """Something that was found: its cosine with what was looked for."""

    id: str
    similarity: float
    metadata: dict[str, Any]


class Damaged(ValueError):
    """What lies on the disk is not what was written."""


class Store(Protocol):
    """Vectors of length 1 under unique ids, each with metadata. What a call has acknowledged outlives the process."""

    about: dict[str, Any]
    dimensions: int

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def add(self, vectors: Vectors, ids: Sequence[str], metadata: Sequence[Metadata]) -> None:
        """All of them or, where something is wrong, none."""
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

    def chunks(self) -> Iterator[tuple[list[str], Vectors]]:
        """Everything that is there, part by part: ids and vectors."""
        ...

    def verify(self) -> list[str]:
        """What is damaged, if anything."""
        ...

    def close(self) -> None: ...


def check_new(ids: Sequence[str], known: Callable[[str], bool]) -> None:
    """Ids must be strings that are not there yet, each once."""
    seen: set[str] = set()
    for each in ids:
        if not isinstance(each, str) or not each:
            raise TypeError(f"an id must be a string that is not empty, got {each!r}")
        if each in seen:
            raise ValueError(f"id {each!r} is given twice")
        if known(each):
            raise ValueError(f"id {each!r} is in the gallery already: delete it first, or choose another")
        seen.add(each)


class UnknownId(KeyError, ValueError):
    """Nothing in the gallery has this id."""

    def __init__(self, id: str, count: int) -> None:
        super().__init__(f"there is no {id!r} among the {count} images of the gallery")

    def __str__(self) -> str:
        return str(self.args[0])
