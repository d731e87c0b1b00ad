"""What a file from elsewhere must look like, told by Python's own type hints, and checked as a whole before it is used.

>>> from typing import Annotated, TypedDict
>>> class Picture(TypedDict):
...     name: Annotated[str, Length(100)]
...     sides: list[Annotated[int, Between(1, 2048)]]
>>> checked({"name": "cat", "sides": [84, 84]}, Picture, "cat.json")
{'name': 'cat', 'sides': [84, 84]}
>>> checked({"name": "cat", "sides": [84, "wide"]}, Picture, "cat.json")
Traceback (most recent call last):
ValueError: cat.json: sides[1] must be a whole number from 1 to 2048, got 'wide'
"""

from __future__ import annotations

import difflib
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required

from .files import read_whole

MOST_JSON = 2**26  # bytes
SHOWN = 60  # characters of a value that is wrong


@dataclass(frozen=True)
class Between:
    """A number from `low` to `high`, both of them included."""

    low: float
    high: float

    def __call__(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"from {self.low:,} to {self.high:,}" if self.high > 9999 else f"from {self.low} to {self.high}"


@dataclass(frozen=True)
class Length:
    """A text, list or object with at most so many parts."""

    most: int

    def __call__(self, value: Any) -> bool:
        return len(value) <= self.most

    def __str__(self) -> str:
        return f"of at most {self.most:,} parts"


def read_json(path: Path, hint: Any = dict[str, Any], most: int = MOST_JSON) -> Any:
    """What a JSON file holds, checked; an object, unless the hint says otherwise."""
    return parsed(read_whole(path, most), hint, str(path))


def parsed(content: bytes | str, hint: Any, where: str) -> Any:
    """JSON, checked. `where` names it in errors."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError(f"{where} is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also of bytes that are no text, and of numbers with too many digits
        raise ValueError(f"{where} is not JSON: {error}") from None
    return checked(value, hint, where)


def checked(value: Any, hint: Any, where: str, key_path: str = "") -> Any:
    """`value`, with tuples and floats in place of lists and whole numbers where `hint` says so; else a `ValueError`."""
    try:
        return _fitted(value, hint, key_path)
    except _Wrong as wrong:
        subject = f"{where}: {wrong.key_path} must" if wrong.key_path else f"{where} must"
        raise ValueError(f"{subject} {wrong.what}") from None


def check_fields(record: Any, where: str) -> None:
    """The fields of a dataclass against their own hints, in its `__post_init__`: who calls it may be from anywhere."""
    for name, hint in hints_of(record.__class__).items():
        object.__setattr__(record, name, checked(getattr(record, name), hint, where, name))


@cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """The type of every field of a dataclass or a typed dictionary.

    Found once: a list of a thousand records asks a thousand times, and Python would evaluate all annotations each time.
    """
    return typing.get_type_hints(kind, include_extras=True)


class _Wrong(Exception):
    def __init__(self, key_path: str, expected: str, got: Any) -> None:
        super().__init__(key_path)
        shown = got if isinstance(got, _Verbatim) else repr(got)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
        self.key_path, self.what = key_path, f"be {expected}, got {shown}"


class _Verbatim(str):
    """Words instead of a value."""


def _fitted(value: Any, hint: Any, key_path: str) -> Any:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Required, NotRequired):
        return _fitted(value, inside[0], key_path)
    if origin is Annotated:
        try:
            fitted = _fitted(value, inside[0], key_path)
        except _Wrong as wrong:
            raise _Wrong(key_path, in_words(hint), value) if wrong.key_path == key_path else wrong from None
        if not all(limit(fitted) for limit in inside[1:]):
            raise _Wrong(key_path, in_words(hint), value)
        return fitted
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return _one_of(value, hint, inside, key_path)
    if origin is Literal:
        if not any(type(option) is type(value) and option == value for option in inside):
            raise _Wrong(key_path, in_words(hint), value)
        return value
    if is_dataclass(hint):
        return _record(value, hint, key_path)
    if typing.is_typeddict(hint):
        return _object(value, hint, key_path)
    if origin is not None:
        return _FITTED[origin](value, inside, hint, key_path)
    if hint is float and type(value) is int and abs(value) < 2**1000:
        return float(value)
    if hint is None:
        hint = types.NoneType
    if type(value) is not hint:
        raise _Wrong(key_path, in_words(hint), value)
    return value


def _one_of(value: Any, hint: Any, options: tuple[Any, ...], key_path: str) -> Any:
    deeper: _Wrong | None = None
    for option in options:
        try:
            return _fitted(value, option, key_path)
        except _Wrong as wrong:
            if wrong.key_path != key_path or typing.get_origin(option) is Annotated:  # of the right kind, and yet wrong
                deeper = deeper or wrong
    kinds = [option for option in options if option not in (None, types.NoneType)]
    raise deeper if deeper is not None and len(kinds) == 1 else _Wrong(key_path, in_words(hint), value)


def _object(value: Any, hint: Any, key_path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(key_path, "an object", value)
    hints = hints_of(hint)
    for name, field_hint in hints.items():  # Python itself does not see through annotations that are texts
        is_needed = typing.get_origin(field_hint) is Required or (
            hint.__total__ and typing.get_origin(field_hint) is not NotRequired
        )
        if is_needed and name not in value:
            raise _Wrong(_at(key_path, name), "there", _Verbatim("nothing"))
    return {name: _fitted(field_value, hints.get(name, Any), _at(key_path, name)) for name, field_value in value.items()}


def _record(value: Any, kind: Any, key_path: str) -> Any:
    """An object into a dataclass, which has a field for everything in it."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, dict):
        raise _Wrong(key_path, "an object", value)
    hints = hints_of(kind)
    for name in value.keys() - hints.keys():
        like = difflib.get_close_matches(str(name), hints, n=1)
        raise _Wrong(_at(key_path, name), f"{like[0]!r}" if like else f"one of {', '.join(hints)}", name)
    for field in fields(kind):
        if field.name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise _Wrong(_at(key_path, field.name), "there", _Verbatim("nothing"))
    return kind(**{name: _fitted(field_value, hints[name], _at(key_path, name)) for name, field_value in value.items()})


def _list(value: Any, inside: tuple[Any, ...], hint: Any, key_path: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _Wrong(key_path, in_words(hint), value)
    return [_fitted(item, inside[0], f"{key_path}[{number}]") for number, item in enumerate(value)]


def _tuple(value: Any, inside: tuple[Any, ...], hint: Any, key_path: str) -> tuple[Any, ...]:
    if len(inside) == 2 and inside[1] is ...:
        return tuple(_list(value, inside, hint, key_path))
    if not isinstance(value, (list, tuple)) or len(value) != len(inside):
        raise _Wrong(key_path, in_words(hint), value)
    return tuple(
        _fitted(item, item_hint, f"{key_path}[{number}]")
        for number, (item, item_hint) in enumerate(zip(value, inside, strict=True))
    )


def _dict(value: Any, inside: tuple[Any, ...], hint: Any, key_path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(key_path, "an object", value)
    return {
        _fitted(name, inside[0], key_path): _fitted(item, inside[1], _at(key_path, name)) for name, item in value.items()
    }


_FITTED: dict[Any, Callable[..., Any]] = {list: _list, tuple: _tuple, dict: _dict}
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", dict: "an object"}


def in_words(hint: Any) -> str:
    """A hint in words.

    >>> in_words(tuple[int, ...] | None)
    'a list of whole numbers or null'
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return " ".join([in_words(inside[0]), *map(str, inside[1:])])
    if origin in (types.UnionType, typing.Union):
        return " or ".join(in_words(option) for option in inside)
    if origin is Literal:
        return "one of " + ", ".join(json.dumps(option) for option in inside)
    if origin is list or (origin is tuple and inside[1:] == (...,)):
        return f"a list of {in_words(inside[0]).removeprefix('a ').replace('number', 'numbers').replace('text', 'texts')}"
    if origin is tuple:
        return f"a list of {len(inside)} values"
    if hint in (None, types.NoneType):
        return "null"
    return _WORDS.get(origin or hint, "an object")


def _at(key_path: str, name: str) -> str:
    shown = name if name.isidentifier() and len(name) <= SHOWN else repr(name[:SHOWN])
    return f"{key_path}.{shown}" if key_path else shown
