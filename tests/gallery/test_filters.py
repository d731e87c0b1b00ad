"""A filter means the same in Python and in SQL."""

import json
import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankshot.gallery.filters import Wanted
from rankshot.gallery.transaction import ZERO

names = st.sampled_from(["a", "b", "two words", "é", "a.b", "$", "[0]", 'quo"te', "back\\slash", ""])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [0.0, 1.0, 0.1, "1", "true", "null", "", "é", "\U0001f600", "\u2028", "\x00", "'", '"', "\\", "\ud800"]
    ),
    st.text("ab1\"'\\é\x00\u2028\U0001f600", max_size=4),
    st.sampled_from(["[1]", "[]", "{}", "[1,2]"]),
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(st.just("x"), st.integers(0, 1), max_size=1),
)


@given(st.dictionaries(names, values, max_size=3), st.dictionaries(names, st.lists(values, max_size=3), max_size=2))
@example({"a": True}, {"a": [1]})
@example({"a": 1.0}, {"a": [True]})
@example({"a": None}, {"a": [None]})
@example({"a": "é\U0001f600"}, {"a": ["é\U0001f600"]})
@example({"a": 2**53 + 1}, {"a": [2**53]})
@example({"é": "a"}, {"é": ["a"]})
@example({"a": [1, 2]}, {"a": ["[1,2]"]})
@example({"a": {}}, {"a": ["{}"]})
@example({"a": "a\x00b"}, {"a": ["a"]})
def test_sql_says_what_python_says(metadata, where):
    wanted = Wanted(where)
    if wanted.sql is None:
        return
    condition, values = wanted.sql
    connection = sqlite3.connect(":memory:")
    note = json.dumps(metadata)
    found = connection.execute(f"SELECT 1 FROM (SELECT ? AS metadata) WHERE {condition}", [note, *values])
    says = found.fetchone() is not None and (ZERO not in note or wanted(metadata))  # as the gallery asks
    assert says == wanted(metadata)
    connection.close()


@pytest.mark.parametrize(
    "where",
    [
        {},
        {1: 2},
        {"é": 1},
        {"a": []},
        {"a": 0.1},
        {"a": 2**53},
        {'a"b': 1},
        {"a": "x'y"},
        {"a": None},
        {"a": list(range(300))},
    ],
)
def test_what_is_left_to_python(where):
    assert Wanted(where).sql is None


def test_what_milvus_is_told():
    assert Wanted({"colour": ["red", "blue"], "n": 1.5}).expression == (
        '(metadata["colour"] == "red" or metadata["colour"] == "blue") and (metadata["n"] == 1.5)'
    )
    assert Wanted({"colour": 'red" or 1 == 1'}).expression is None
