"""Which metadata a hit must have, told so that a database can look for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from .store import Metadata

PLAIN = re.compile(r"[^\"\'\\\x00-\x1f]*")  # a text without quotes and the like
MOST_VALUES, LONGEST = 200, 10_000  # that are told to a database, and characters of one


class Wanted:
    """A filter that names values: every one of these must be there, as it is or as one of a list.

    >>> Wanted({"colour": ["red", "blue"]})({"colour": "blue", "size": 3})
    True
    """

    def __init__(self, where: Mapping[str, Any]) -> None:
        self.values = {
            name: list(value) if isinstance(value, (list, tuple, set)) else [value] for name, value in where.items()
        }

    def __call__(self, metadata: Metadata) -> bool:
        return all(name in metadata and metadata[name] in values for name, values in self.values.items())

    @property
    def expression(self) -> str | None:
        """As Milvus has it; None: it cannot say this."""
        if not self._can_be_expressed(lambda value: type(value) in (bool, int, float) or _is_plain_text(value)):
            return None
        return " and ".join(
            "(" + " or ".join(f"metadata[{json.dumps(name)}] == {json.dumps(value)}" for value in values) + ")"
            for name, values in self.values.items()
        )

    @property
    def sql(self) -> tuple[str, list[Any]] | None:
        """A condition on the column `metadata` and its values; None: SQLite might not compare these as Python does."""
        is_expressible = self._can_be_expressed(lambda value: _is_small(value) or _is_plain_text(value))
        if not is_expressible or not all(
            type(name) is str and name.isascii() for name in self.values
        ):  # JSON has other names in escapes
            return None
        parts, given = [], []
        for name, values in self.values.items():
            parts.append(
                f"json_extract(metadata, ?) IN ({', '.join('?' * len(values))}) AND json_type(metadata, ?) NOT IN (?, ?)"
            )
            path = f'$."{name}"'
            given += [path, *values, path, "array", "object"]  # which it tells as texts
        return " AND ".join(parts), given

    def _can_be_expressed(self, is_plain: Callable[[Any], bool]) -> bool:
        parts = [*self.values, *(value for values in self.values.values() for value in values)]
        return bool(self.values) and len(parts) <= MOST_VALUES and all(map(is_plain, parts)) and all(self.values.values())


def _is_plain_text(value: Any) -> bool:
    return type(value) is str and len(value) <= LONGEST and PLAIN.fullmatch(value) is not None and value.isprintable()


def _is_small(value: Any) -> bool:
    """A whole number that a floating-point number can hold too, true or false."""
    return type(value) is bool or (type(value) is int and abs(value) < 2**53)
