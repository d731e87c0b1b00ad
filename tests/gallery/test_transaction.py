"""What is read from the tables of a gallery is checked, whoever has made them; filters mean what they do in Python."""

import sqlite3
import tracemalloc

import pytest
from disks import raised_by
from gallery.adding import made, vectors_of

from rankshot.gallery import Damaged
from rankshot.gallery.database import DATABASE
from rankshot.gallery.filters import Wanted
from rankshot.gallery.local import LocalStore
from rankshot.gallery.segment import SEGMENT
from rankshot.gallery.transaction import checksum_of


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE items SET metadata = '{\"from\": 7}' WHERE row = 1", "what is told about image 1 is damaged"),
        ("UPDATE items SET id = x'616263' WHERE row = 1", "what is told about image 1 is damaged"),
        ("DELETE FROM items WHERE row = 1", "of 4 images it tells what became of 3"),
        ("UPDATE state SET rows = 9", "it counts 9 vectors, and tells of 4"),
        ("UPDATE blocks SET first = 1", "not told of one after another"),
        ("INSERT INTO deleted VALUES (77, 99)", "of 4 images it tells what became of 5"),
        ("DELETE FROM state", "does not tell what it is about"),
        ("UPDATE state SET change = 'x'", "where there should be numbers there is"),
        ("UPDATE state SET rows = -1", "where there should be numbers there is"),
        ("UPDATE blocks SET rows = x'00'", "where there should be numbers there is"),
        ("UPDATE state SET dimensions = 9223372036854775807", "must be a whole number from 1 to 65,536"),
        ("UPDATE state SET about = '[1]'", "must be an object"),
        ("UPDATE items SET source = '[1, 2]', row = row", "is damaged"),
    ],
)
def test_a_database_that_somebody_has_changed(tmp_path, change, told):
    made(tmp_path / "g", (0, 4)).close()
    database = sqlite3.connect(tmp_path / "g" / DATABASE)
    database.execute(change)
    database.commit()
    database.close()
    with pytest.raises(ValueError, match=told):
        LocalStore(tmp_path / "g").search(vectors_of(0, 1), 4)


def test_filters_find_what_python_finds(tmp_path):
    """Whatever the names and values are."""
    notes = [
        {"größe": "groß"},
        {"t": [1, 2]},
        {"t": "[1,2]"},
        {"s": "a\0b"},
        {"s": "a"},
        {"o": {}},
        {"o": "{}"},
        {"s": True},
    ]
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, len(notes)), [str(k) for k in range(len(notes))], notes)
    for where in [{"größe": "groß"}, {"t": "[1,2]"}, {"s": "a"}, {"s": 1}, {"o": "{}"}, {"o": ["{}", "x"], "t": 1}]:
        wanted = Wanted(where)
        found = {hit.id for hit in store.search(vectors_of(0, 1), 99, wanted)[0]}
        assert found == {str(k) for k, note in enumerate(notes) if wanted(note)}, where


def test_more_rows_than_there_are_take_no_memory_and_no_disk(tmp_path):
    made(tmp_path / "g", (0, 4)).close()
    for rows in (60_000_000, 2, 2**62):
        database = sqlite3.connect(tmp_path / "g" / DATABASE)
        database.execute("UPDATE state SET rows = ?", (rows,))
        database.commit()
        database.close()
        before = (tmp_path / "g" / SEGMENT).stat().st_size
        store = LocalStore(tmp_path / "g")
        with pytest.raises(Damaged, match="is damaged"):
            store.add(vectors_of(9, 1), ["new"], [{}])
        assert (tmp_path / "g" / SEGMENT).stat().st_size == before
        tracemalloc.start()
        try:
            told = raised_by(store.verify) or store.verify()
        except Damaged as error:
            told = [str(error)]
        assert told
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()


@pytest.mark.parametrize("origin", [5, b"[1, 2, 'x']", "[1]", 0.5])
def test_a_source_that_somebody_has_made(tmp_path, origin):
    """With the right checksum too."""
    made(tmp_path / "g", (0, 2)).close()
    database = sqlite3.connect(tmp_path / "g" / DATABASE)
    key, note = database.execute("SELECT id, metadata FROM items WHERE row = 0").fetchone()
    database.execute("UPDATE items SET source = ?, checksum = ?", (origin, checksum_of(0, key, note, origin)))
    database.commit()
    database.close()
    with pytest.raises(ValueError, match="the source of an image"):
        LocalStore(tmp_path / "g").sources(["i0"])
    with pytest.raises(ValueError, match=r"is damaged|the source of an image"):
        list(LocalStore(tmp_path / "g").chunks())


@pytest.mark.parametrize("note", ["[1]", "{", "[" * 100_000, "5", "null"])
@pytest.mark.parametrize("where", [None, Wanted({"from": 0}), lambda told: True], ids=["all", "sql", "function"])
def test_metadata_that_somebody_has_made(tmp_path, note, where):
    """With the right checksum: a gallery from elsewhere."""
    made(tmp_path / "g", (0, 2)).close()
    database = sqlite3.connect(tmp_path / "g" / DATABASE)
    (key,) = database.execute("SELECT id FROM items WHERE row = 0").fetchone()
    database.execute("UPDATE items SET metadata = ?, checksum = ? WHERE row = 0", (note, checksum_of(0, key, note, None)))
    database.commit()
    database.close()
    store = LocalStore(tmp_path / "g")
    if isinstance(where, Wanted) and note in ("[1]", "5", "null"):
        assert [hit.id for hit in store.search(vectors_of(0, 1), 4, where)[0]] == ["i1"]  # nothing in it is from 0
        return
    with pytest.raises(Damaged, match="damaged"):
        store.search(vectors_of(0, 1), 4, where)
