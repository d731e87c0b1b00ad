"""What a file must look like, and what is said where it does not."""

from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest

from rankshot import schema
from rankshot.schema import Between, Length, checked, parsed, read_json


class Inner(TypedDict):
    sides: tuple[Annotated[int, Between(1, 9)], float]


class Outer(TypedDict, total=False):
    name: Required[Annotated[str, Length(5)]]
    inner: Inner
    kind: Literal["a", "b"] | None
    counts: dict[str, list[int]]
    anything: Any


class Total(TypedDict):
    must: int
    may: NotRequired[bool]


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        ({"name": "x", "inner": {"sides": [3, 2]}}, Outer, {"name": "x", "inner": {"sides": (3, 2.0)}}),
        ({"name": "x", "kind": None, "more": [1]}, Outer, {"name": "x", "kind": None, "more": [1]}),
        ([1, 2], tuple[int, ...], (1, 2)),
        (5, float, 5.0),
        (None, int | None, None),
        ({"must": 1}, Total, {"must": 1}),
    ],
)
def test_what_fits(value, hint, wanted):
    assert checked(value, hint, "it") == wanted


def test_annotations_are_evaluated_once_for_many_records(monkeypatch):
    asked = []
    evaluate = schema.typing.get_type_hints
    monkeypatch.setattr(schema.typing, "get_type_hints", lambda *kind, **how: asked.append(kind) or evaluate(*kind, **how))

    class Record(TypedDict):
        name: str

    many = [{"name": str(number)} for number in range(100)]
    assert checked(many, list[Record], "it") == many
    assert asked == [(Record,)]


@pytest.mark.parametrize(
    ("value", "hint", "told"),
    [
        ([], Outer, "it must be an object, got []"),
        ({}, Outer, "it: name must be there, got nothing"),
        ({"may": True}, Total, "it: must must be there, got nothing"),
        ({"must": 1, "may": 1}, Total, "it: may must be true or false, got 1"),
        ({"name": "toolong"}, Outer, "it: name must be a text of at most 5 parts, got 'toolong'"),
        (
            {"name": "x", "inner": {"sides": [0, 1]}},
            Outer,
            "it: inner.sides[0] must be a whole number from 1 to 9, got 0",
        ),
        ({"name": "x", "inner": {"sides": [1]}}, Outer, "it: inner.sides must be a list of 2 values, got [1]"),
        ({"name": "x", "inner": {"sides": "ab"}}, Outer, "it: inner.sides must be a list of 2 values, got 'ab'"),
        ({"name": "x", "kind": "c"}, Outer, 'it: kind must be one of "a", "b" or null, got \'c\''),
        ({"name": "x", "counts": {"a b": [1, True]}}, Outer, "it: counts.'a b'[1] must be a whole number, got True"),
        (True, int, "it must be a whole number, got True"),
        (1, bool, "it must be true or false, got 1"),
        (1.0, int, "it must be a whole number, got 1.0"),
        (float("nan"), Annotated[float, Between(0, 1)], "it must be a number from 0 to 1, got nan"),
        (10**400, float, "it must be a number, got 1000"),
        ("x" * 100, int, "it must be a whole number, got '" + "x" * 59 + "…"),
    ],
)
def test_what_does_not_fit(value, hint, told):
    with pytest.raises(ValueError, match="must") as caught:
        checked(value, hint, "it")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"1" * 5000, "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_what_is_no_json(content, told):
    with pytest.raises(ValueError, match=told):
        parsed(content, Any, "it")


def test_a_file_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"must": "x"}')
    with pytest.raises(ValueError, match=r"a\.json: must must be a whole number, got 'x'"):
        read_json(tmp_path / "a.json", Total)
    with pytest.raises(OSError, match="is larger than 3 bytes"):
        read_json(tmp_path / "a.json", Total, most=3)
