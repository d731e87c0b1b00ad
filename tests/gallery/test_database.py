"""A database from elsewhere is used only if it is one of ours, and nothing beside it leads away."""

import sqlite3
import threading

import numpy as np
import pytest

from rankshot.gallery import Damaged, database
from rankshot.gallery.database import DATABASE, Database
from rankshot.gallery.local import LocalStore
from rankshot.gallery.rescuing import rescue


@pytest.fixture
def folder(tmp_path):
    database.create(tmp_path, 8, "{}")
    return tmp_path


def changed(folder, *statements):
    connection = sqlite3.connect(folder / DATABASE)
    for each in statements:
        connection.execute(each)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CREATE TABLE more (x)", "table 'more'"),
        ("CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items; END", "trigger 't'"),
        ("CREATE VIEW v AS SELECT * FROM items", "view 'v'"),
        ("CREATE INDEX i ON items (metadata)", "index 'i'"),
        ("ALTER TABLE items ADD COLUMN more", "table 'items'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "table 'f'"),
    ],
)
def test_what_we_did_not_make(folder, statement, told):
    changed(folder, statement)
    with pytest.raises(Damaged, match=f"it holds the {told}, which is not what rankshot made"):
        Database(folder)


def test_a_table_that_is_gone(folder):
    changed(folder, "DROP TABLE deleted")
    with pytest.raises(Damaged, match="its tables are not all there"):
        Database(folder)


def test_another_version(folder):
    changed(folder, "PRAGMA user_version = 9")
    with pytest.raises(ValueError, match="is of format 9: this version of rankshot reads 2"):
        Database(folder)


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"])
def test_links_are_not_followed(folder, name):
    target = folder.with_name("victim")
    target.write_bytes((folder / DATABASE).read_bytes())
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(OSError, match="is a link, and links within such a folder are not followed"):
        Database(folder)
    assert target.read_bytes() == before


def test_a_rollback_journal_is_refused(folder):
    """SQLite would carry it out, and it may name any file to be deleted."""
    (folder / f"{DATABASE}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    with pytest.raises(Damaged, match="which no gallery has"):
        Database(folder)
    assert (folder / f"{DATABASE}-journal").exists()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 99, b"SQLite format 3\0" + bytes(5000)])
def test_no_database(folder, content):
    (folder / DATABASE).write_bytes(content)
    with pytest.raises(Damaged, match="damaged"):
        Database(folder)


def test_every_byte_of_the_first_pages_may_be_another(folder):
    """Whatever is damaged: an error of ours, or it does not matter."""
    path = folder / DATABASE
    whole = path.read_bytes()
    for place in [*range(0, 200, 3), *range(200, len(whole), 97)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        for beside in ("-wal", "-shm"):
            path.with_name(DATABASE + beside).unlink(missing_ok=True)
        try:
            found = Database(folder)
            with found.reading() as connection:
                connection.execute("SELECT * FROM state, items, deleted, blocks").fetchall()
            found.close()
        except (ValueError, OSError):
            pass


@pytest.mark.parametrize("column", ["metadata", "source", "id"])
def test_a_value_of_megabytes_is_not_read(folder, column):
    """One of 100 MB took a gigabyte to look at."""
    store = LocalStore(folder)
    store.add(np.ones((2, store.dimensions), np.float32), ["a", "b"], [{"x": 1}] * 2)
    store.close()
    changed(folder, f"UPDATE items SET {column} = zeroblob({database.LONGEST + 1}) WHERE row = 1")
    with pytest.raises(Damaged, match="too big"):
        LocalStore(folder).search(np.ones((1, store.dimensions), np.float32), 2)
    assert "what is told about image 1 is damaged" in LocalStore(folder).verify()[-1]
    rescued, _ = rescue(folder, folder / "new")
    assert [id for chunk in rescued.chunks() for id in chunk.ids] == ["a"]


def test_what_is_read_from_a_copy_has_a_size(folder, tmp_path, monkeypatch):
    """A file with holes would fill the disk of whoever opens it."""
    found = Database(folder)
    (tmp_path / "copy").mkdir()
    found._copy_to(tmp_path / "copy")
    assert (tmp_path / "copy" / DATABASE).read_bytes() == (folder / DATABASE).read_bytes()
    monkeypatch.setattr(database, "MOST_COPIED", 1000)
    with pytest.raises(OSError, match="is too large to be read where nothing can be written"):
        found._copy_to(tmp_path / "copy")


def test_who_waits_too_long_is_told(folder, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    one, other = Database(folder), Database(folder)
    with (
        one.writing(),
        pytest.raises(TimeoutError, match=r"another process has been writing to .* for 0.05 s"),
        other.writing(),
    ):
        pass
    done = threading.Event()

    def wait():
        with pytest.raises(TimeoutError, match="another thread has been writing"), one.writing():
            pass
        done.set()

    with one.writing():
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert done.is_set()


def test_what_fails_within_a_change_undoes_it(folder):
    store = Database(folder)

    def change():
        with store.writing() as connection:
            connection.execute("UPDATE state SET rows = 7")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    with store.reading() as connection:
        assert connection.execute("SELECT rows FROM state").fetchone() == (0,)
