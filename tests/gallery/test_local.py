"""What was acknowledged is there, whatever happened; what is damaged is told, and the rest can be rescued."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gallery.adding import vectors_of

from rankshot.gallery import Damaged
from rankshot.gallery.local import ITEMS, JOURNAL, VECTORS, LocalStore

ADDING = Path(__file__).with_name("adding.py")


def test_killed_in_the_middle_nothing_acknowledged_is_lost(tmp_path):
    """kill -9 in a loop of additions, again and again; the next process goes on with what is there."""
    folder = tmp_path / "g"
    LocalStore.create(folder, 8, {}).close()
    acknowledged: dict[int, int] = {}
    random = np.random.default_rng(0)
    for left in reversed(range(3)):
        with subprocess.Popen([sys.executable, ADDING, folder], stdout=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline()]  # it has begun
            time.sleep(random.uniform(0, 0.08))
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.read().splitlines()
        for line in lines:
            number, count = map(int, line.split()) if line.count(" ") == 1 else (0, 0)
            acknowledged |= {number: count} if count else {}
        store = LocalStore(folder)
        assert [told for told in store.verify() if "do not count" not in told] == []
        for number, count in list(acknowledged.items())[-10 if left else 0 :]:
            for place in {0, count - 1}:
                assert np.array_equal(store.vector(f"i{number + place}"), vectors_of(number, count)[place])
                assert store.metadata(f"i{number + place}") == {"from": number}
        store.close()
    assert len(acknowledged) > 3


@pytest.mark.parametrize("name", [VECTORS, ITEMS, JOURNAL])
@pytest.mark.parametrize("cut", [1, 3, 63])
def test_cut_short_while_writing(tmp_path, name, cut):
    """Everything that a crash may leave behind what counts."""
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 3), ["a", "b", "c"], [{}] * 3)
    before = {each: (tmp_path / "g" / each).stat().st_size for each in (VECTORS, ITEMS, JOURNAL)}
    store.add(vectors_of(1, 3), ["d", "e", "f"], [{}] * 3)
    store.close()
    for each in (VECTORS, ITEMS, JOURNAL):  # the data may have reached the disk, but not the record, or not all of it
        size = before[each] + (cut if each == name else 0) if each != JOURNAL or name == JOURNAL else before[each]
        os.truncate(tmp_path / "g" / each, size)
    store = LocalStore(tmp_path / "g")
    assert len(store) == 3
    store.add(vectors_of(2, 2), ["x", "y"], [{}] * 2)
    again = LocalStore(tmp_path / "g")
    assert (len(again), again.verify()) == (5, [])
    assert np.array_equal(again.vector("y"), vectors_of(2, 2)[1])


def test_a_group_of_blocks_counts_as_a_whole(tmp_path):
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 2), ["a", "b"], [{}] * 2)
    store.add(vectors_of(1, 9000), [f"i{k}" for k in range(9000)], [{}] * 9000)
    path = tmp_path / "g" / JOURNAL
    content = path.read_bytes()
    assert len(content) == 4 * 64
    for records in (2, 3):  # the last of its three records is not there
        path.write_bytes(content[: 64 * records])
        assert len(LocalStore(tmp_path / "g")) == 2
    path.write_bytes(content[:128] + bytes(64) + content[192:])  # one in the middle has not reached the disk
    assert len(LocalStore(tmp_path / "g")) == 2
    path.write_bytes(content)
    assert len(LocalStore(tmp_path / "g")) == 9002


@pytest.mark.parametrize("name", [VECTORS, ITEMS])
def test_damage_is_found_and_the_rest_rescued(tmp_path, name):
    store = LocalStore.create(tmp_path / "g", 8, {"embedder": 1})
    for number in range(4):
        store.add(vectors_of(number, 2), [f"{number}a", f"{number}b"], [{"n": number}] * 2)
    store.delete(["3a"])
    size = (tmp_path / "g" / name).stat().st_size
    with (tmp_path / "g" / name).open("r+b") as file:
        file.seek(size * 3 // 10)
        file.write(b"\x00\xff")
    damaged = LocalStore(tmp_path / "g")  # the header is all that is looked at
    (told,) = damaged.verify()
    assert "images 2 to 3 are damaged: their checksum is wrong" in told
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        damaged.search(vectors_of(0, 1), 1)
    rescued, lost = damaged.rescue(tmp_path / "new")
    assert lost == [told]
    assert sorted(id for ids, _ in rescued.chunks() for id in ids) == ["0a", "0b", "2a", "2b", "3b"]
    assert rescued.metadata("2b") == {"n": 2}
    assert rescued.about == {"embedder": 1}
    assert rescued.verify() == []


@pytest.mark.parametrize("byte", [0, 4, 5, 6, 8, 20, 30, 45, 63])
@pytest.mark.parametrize("record", [1, 2], ids=["addition", "deletion"])
def test_a_damaged_record_is_no_crash(tmp_path, record, byte):
    """Nothing is forgotten without a word, nor overwritten."""
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 2), ["a", "b"], [{}] * 2)
    store.add(vectors_of(1, 2), ["c", "d"], [{}] * 2)
    store.delete(["a"])
    content = bytearray((tmp_path / "g" / JOURNAL).read_bytes())
    content[64 * record + byte] ^= 0x41
    (tmp_path / "g" / JOURNAL).write_bytes(content)
    damaged = LocalStore(tmp_path / "g")
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        damaged.search(vectors_of(0, 1), 1)
    with pytest.raises(Damaged, match="What is intact can be rescued"):
        damaged.add(vectors_of(2, 1), ["e"], [{}])
    rescued, lost = damaged.rescue(tmp_path / "new")
    assert any("a record of the journal is damaged" in told for told in lost)
    found = sorted(id for ids, _ in rescued.chunks() for id in ids)
    assert found == (["b"] if record == 1 else ["a", "b", "c", "d"])


def test_a_damaged_deletion_deletes_nothing(tmp_path):
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 3), ["a", "b", "c"], [{}] * 3)
    store.delete(["b"])
    content = bytearray((tmp_path / "g" / ITEMS).read_bytes())
    content[-8] ^= 3
    (tmp_path / "g" / ITEMS).write_bytes(content)
    damaged = LocalStore(tmp_path / "g")
    with pytest.raises(Damaged, match="a deletion is damaged"):
        len(damaged)
    rescued, lost = damaged.rescue(tmp_path / "new")
    assert ["a deletion is damaged" in told for told in lost] == [True]
    assert len(rescued) == 3


def test_files_that_are_cut_or_gone(tmp_path):
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 2), ["a", "b"], [{}] * 2)
    store.add(vectors_of(1, 2), ["c", "d"], [{}] * 2)
    os.truncate(tmp_path / "g" / VECTORS, 8 * 4 * 3)
    rescued, lost = LocalStore(tmp_path / "g").rescue(tmp_path / "new")
    assert (len(rescued), len(lost)) == (2, 1)
    os.truncate(tmp_path / "g" / JOURNAL, 64)  # as if the last addition had never been finished
    assert ["do not count" in told for told in LocalStore(tmp_path / "g").verify()] == [True, True]
    (tmp_path / "g" / ITEMS).unlink()
    with pytest.raises(FileNotFoundError, match=r"items\.bin"):
        LocalStore(tmp_path / "g")


def test_readers_see_what_others_write(tmp_path):
    one = LocalStore.create(tmp_path / "g", 8, {})
    other = LocalStore(tmp_path / "g")
    one.add(vectors_of(0, 2), ["a", "b"], [{}] * 2)
    assert len(other) == 2
    assert "b" in other
    one.delete(["a"])
    assert [hit.id for hit in other.search(vectors_of(0, 1), 5)[0]] == ["b"]


def test_two_processes_write_in_turns(tmp_path):
    one = LocalStore.create(tmp_path / "g", 8, {})
    other = LocalStore(tmp_path / "g")
    one.add(vectors_of(0, 1), ["a"], [{}])
    with pytest.raises(ValueError, match="id 'a' is in the gallery already"):
        other.add(vectors_of(1, 1), ["a"], [{}])
    other.add(vectors_of(1, 1), ["b"], [{}])
    one.delete(["b"])
    assert len(LocalStore(tmp_path / "g")) == 1


def test_bad_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no gallery: there is no gallery\.json in it"):
        LocalStore(tmp_path)
    (tmp_path / "gallery.json").write_text('{"format": 9}')
    with pytest.raises(ValueError, match="is of format 9: this version reads 1"):
        LocalStore(tmp_path)
    (tmp_path / "gallery.json").write_text('{"format": 1}')
    with pytest.raises(Damaged, match="it should tell 'dimensions' and 'about'"):
        LocalStore(tmp_path)
    with pytest.raises(FileExistsError, match="exists already and is not empty"):
        LocalStore.create(tmp_path, 8, {})
