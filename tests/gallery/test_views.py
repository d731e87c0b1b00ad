"""Which vectors count at a moment; those that are damaged are found before they are used."""

import os

import pytest
from gallery.adding import made, vectors_of

from rankshot.gallery import Damaged
from rankshot.gallery.local import LocalStore
from rankshot.gallery.segment import SEGMENT


def test_damaged_vectors_are_found_and_told(tmp_path):
    store = made(tmp_path / "g", (0, 2), (2, 2), (4, 2))
    store.close()
    with (tmp_path / "g" / SEGMENT).open("r+b") as file:
        file.seek(70)
        file.write(b"\x00\xff")
    damaged = LocalStore(tmp_path / "g")  # a few rows are all that is looked at
    (told,) = damaged.verify()
    assert "images 2 to 3 are damaged: their checksum is wrong" in told
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        damaged.search(vectors_of(0, 1), 1)


def test_vectors_that_are_cut_short_or_gone(tmp_path):
    store = made(tmp_path / "g", (0, 4))
    store.close()
    os.truncate(tmp_path / "g" / SEGMENT, 8 * 4 * 3)
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        LocalStore(tmp_path / "g").search(vectors_of(0, 1), 1)
    (tmp_path / "g" / SEGMENT).unlink()
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        LocalStore(tmp_path / "g").search(vectors_of(0, 1), 1)


def test_an_older_moment_is_seen_as_it_was(tmp_path):
    """A transaction that began before a change, in a thread that goes on after it."""
    store = made(tmp_path / "g", (0, 4))
    with store._reading() as tables:
        assert store._views.at(tables).alive == 4
        store.delete(["i0"])
        store.add(vectors_of(9, 1), ["new"], [{}])
        assert len(store.search(vectors_of(0, 1), 9)[0]) == 4
        view = store._views.at(tables)
    assert (len(view.vectors), view.alive) == (4, 4)
