"""What was acknowledged is there, whatever happened; what is damaged is told; who searches is never disturbed."""

import errno
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from disks import grow, raised_by
from forked import Started, python
from gallery.adding import made, vectors_of

from rankshot.gallery import Damaged
from rankshot.gallery.database import DATABASE
from rankshot.gallery.local import LocalStore
from rankshot.gallery.segment import SEGMENT
from rankshot.gallery.store import Source

ADDING = """
import sys; from pathlib import Path; from gallery.adding import add_without_end
add_without_end(Path(sys.argv[1]))
"""


def ids_in(store):
    return [id for chunk in store.chunks() for id in chunk.ids]


def test_killed_in_the_middle_nothing_acknowledged_is_lost(tmp_path):
    """kill -9 in a loop of additions, again and again; the next process goes on with what is there."""
    folder = tmp_path / "g"
    LocalStore.create(folder, 8, {}).close()
    acknowledged: dict[int, int] = {}
    random = np.random.default_rng(0)
    for left in reversed(range(3)):
        process = Started(ADDING, folder)
        while not process.printed():
            time.sleep(0.001)  # until it has begun
        time.sleep(random.uniform(0, 0.08))
        process.kill()
        done = process.ended()
        assert done.returncode == -signal.SIGKILL, done.stderr
        for line in done.stdout.splitlines():
            number, count = map(int, line.split()) if line.count(" ") == 1 else (0, 0)
            acknowledged |= {number: count} if count else {}
        store = LocalStore(folder)
        assert store.verify() == []
        for number, count in list(acknowledged.items())[-10 if left else 0 :]:
            for place in {0, count - 1}:
                assert np.array_equal(store.vector(f"i{number + place}"), vectors_of(number, count)[place])
                assert store.metadata(f"i{number + place}") == {"from": number}
        store.close()
    assert len(acknowledged) > 3


def test_what_a_crash_leaves_behind_what_counts(tmp_path):
    """Vectors that were written and never committed are overwritten by the next."""
    store = made(tmp_path / "g", (0, 3))
    with (tmp_path / "g" / SEGMENT).open("ab") as file:
        file.write(b"half a vector")
    store.add(vectors_of(5, 2), ["x", "y"], [{}] * 2)
    again = LocalStore(tmp_path / "g")
    assert (len(again), again.verify()) == (5, [])
    assert np.array_equal(again.vector("y"), vectors_of(5, 2)[1])


def test_a_full_disk_loses_nothing(small_disk):
    """Of finding 2: an addition that did not reach the disk is an error, and never half there."""
    disk = small_disk("300k")
    store, acknowledged = LocalStore.create(disk / "g", 8, {}), 0

    def add():
        store.add(vectors_of(acknowledged, 500), [f"i{acknowledged + k}" for k in range(500)], [{}] * 500)

    while (problem := raised_by(add)) is None:
        acknowledged += 500
    assert (problem.errno, acknowledged > 0) == (errno.ENOSPC, True)
    for again in (store, LocalStore(disk / "g")):
        assert (len(again), again.verify()) == (acknowledged, [])
        assert np.array_equal(again.vector("i499"), vectors_of(0, 500)[499])
    grow(disk, "3m")
    add()
    assert (len(store), store.verify()) == (acknowledged + 500, [])


@pytest.mark.parametrize("size", ["16k", "24k", "40k", "60k", "76k", "88k"])
def test_a_disk_too_small_to_create_a_gallery(small_disk, size):
    """Of finding 4: with more room the same folder can be used."""
    disk = small_disk(size)
    problem = raised_by(lambda: LocalStore.create(disk / "g", 8, {}))
    assert problem is None or problem.errno == errno.ENOSPC
    grow(disk, "3m")
    store = LocalStore.create(disk / "g", 8, {}) if problem else LocalStore(disk / "g")
    store.add(vectors_of(0, 1), ["a"], [{}])


def test_a_gallery_killed_while_it_is_created_can_be_created_again(tmp_path):
    """Of finding 4, at whatever moment."""
    code = (
        "import sys, os, signal, threading; from pathlib import Path; from rankshot.gallery.local import LocalStore\n"
        "print('ready', flush=True); threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), 9)).start()\n"
        "LocalStore.create(Path(sys.argv[1]), 8, {}); os.kill(os.getpid(), 9)"
    )
    for number, pause in enumerate((0.0, 0.0005, 0.001, 0.003)):
        folder = tmp_path / str(number)
        assert python(code, folder, pause).stdout == "ready\n"
        try:
            store = LocalStore(folder)
        except FileNotFoundError:
            store = LocalStore.create(folder, 8, {})
        store.add(vectors_of(0, 1), ["a"], [{}])
        assert ids_in(store) == ["a"]
        left = [path for making in folder.glob(".making-*") for path in making.iterdir()]
        assert not left or not (folder / DATABASE).exists()  # but for an empty folder, perhaps


@pytest.mark.parametrize("lost", [1, 700, 4096, 5000])
def test_a_database_that_is_cut_short(tmp_path, lost):
    """SQLite takes what is missing for zeros."""
    made(tmp_path / "g", (0, 400)).close()
    path = tmp_path / "g" / DATABASE
    os.truncate(path, path.stat().st_size - lost)
    with pytest.raises(Damaged, match="damaged"):
        LocalStore(tmp_path / "g").search(vectors_of(0, 1), 4)


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


def test_an_id_that_is_deleted_can_be_used_again(tmp_path):
    store = made(tmp_path / "g", (0, 3))
    store.delete(["i1"])
    store.add(vectors_of(9, 1), ["i1"], [{"new": True}])
    assert np.array_equal(store.vector("i1"), vectors_of(9, 1)[0])
    assert ids_in(store) == ["i0", "i2", "i1"]
    assert store.verify() == []


def test_replacing_is_one_change(tmp_path):
    store, source = made(tmp_path / "g", (0, 2)), Source(5, -3, "ab")
    store.add(vectors_of(7, 2), ["i1", "new"], [{"again": 1}, {}], [source, None], replace=True)
    assert store.sources(["i0", "i1", "new", "never"]) == {"i0": None, "i1": source, "new": None}
    assert np.array_equal(store.vector("i1"), vectors_of(7, 2)[0])
    assert store.metadata("i1") == {"again": 1}
    assert (len(store), store.verify()) == (3, [])


def test_numbers_for_images_without_a_name(tmp_path):
    store = LocalStore.create(tmp_path / "g", 8, {})
    assert store.add(vectors_of(0, 3), [None, "1", None], [{}] * 3) == ["0", "1", "2"]
    store.delete(["0"])
    assert store.add(vectors_of(1, 2), [None, None], [{}] * 2) == ["3", "4"]


@pytest.mark.parametrize("name", ["caf\udce9.jpg", "\ud800", "a\x00b", "é✓\U0001f600", "x" * 8192, "'; DROP TABLE items"])
def test_any_name(tmp_path, name):
    store = LocalStore.create(tmp_path / "g", 8, {})
    store.add(vectors_of(0, 2), [name, "other"], [{name: name}, {}])
    assert store.search(vectors_of(0, 1), 2)[0][0][0] in (name, "other")
    assert store.metadata(name) == {name: name}
    store.delete([name])
    assert name not in store


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": object()}, {1: {2: {3}}}])
def test_metadata_that_json_cannot_hold(tmp_path, bad):
    store = LocalStore.create(tmp_path / "g", 8, {})
    with pytest.raises(ValueError, match="metadata must be what JSON can hold"):
        store.add(vectors_of(0, 2), ["a", "b"], [{}, bad])
    assert len(store) == 0


def test_a_read_only_folder_can_be_searched(tmp_path):
    """Also one whose last changes lie in SQLite's log still, as a process that was killed leaves it."""
    folder = tmp_path / "g"
    store = made(folder, (0, 3))
    copies = {"closed": tmp_path / "closed", "killed": tmp_path / "killed"}
    shutil.copytree(folder, copies["killed"])  # with its log
    store.close()
    shutil.copytree(folder, copies["closed"])
    assert (copies["killed"] / f"{DATABASE}-wal").stat().st_size > 0
    (copies["killed"] / f"{DATABASE}-shm").unlink()
    code = (
        "import sys, os; from pathlib import Path; import numpy as np; from rankshot.gallery.local import LocalStore\n"
        "import numpy.ma  # which numpy imports when it is first used: whoever this becomes may not read its folder\n"
        "os.setgid(65534), os.setuid(65534)\n"
        "store = LocalStore(Path(sys.argv[1])); assert not store.is_writable\n"
        "print([hit.id for hit in store.search(np.ones((1, 8), np.float32), 9)[0]].__len__())\n"
        "try: store.add(np.ones((1, 8), np.float32), ['x'], [{}])\n"
        "except PermissionError as error: print(error.strerror)"
    )
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody who may not write")
    for each in (tmp_path, *tmp_path.parents):
        if each.is_relative_to(tempfile.gettempdir()) and each != Path(tempfile.gettempdir()):
            each.chmod(0o755)
    for place in copies.values():
        place.chmod(0o555)
        for file in place.iterdir():
            file.chmod(0o444)
        done = python(code, place)
        assert done.stdout.splitlines() == ["3", "the gallery is read-only"], done.stderr


def test_a_forked_process_opens_it_again(tmp_path):
    store = made(tmp_path / "g", (0, 2))
    child = os.fork()
    if child == 0:
        try:
            len(store)
        except ValueError as error:
            os._exit(0 if "before this process was forked: open it here again" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    store.close()
    with pytest.raises(ValueError, match="was closed: open it again"):
        len(store)


def test_who_searches_sees_one_moment(tmp_path):
    """Threads and another process change everything while others search: no error, nothing that was not there."""
    store = made(tmp_path / "g", (0, 200))
    stop, problems = threading.Event(), []

    def change(number):
        mine = LocalStore(tmp_path / "g") if number else store
        for turn in range(40):
            names = [f"t{number}-{turn}-{k}" for k in range(5)]
            mine.add(vectors_of(turn, 5), names, [{"colour": "red", "turn": turn}] * 5)
            mine.delete(names[:3])
        stop.set()

    def search():
        while not stop.is_set():
            try:
                for hit in store.search(vectors_of(3, 2), 20, lambda told: told.get("colour") == "red")[0]:
                    if hit.metadata["colour"] != "red" or f"-{hit.metadata['turn']}-" not in hit.id:
                        problems.append(hit)
                if len(store.search(vectors_of(3, 1), 50)[0]) != 50:
                    problems.append("too few")
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=change, args=[number]) for number in range(2)]
    threads += [threading.Thread(target=search) for _ in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
    assert (len(store), store.verify()) == (200 + 2 * 40 * 2, [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_vectors_are_not_written_through_a_link(tmp_path, when):
    """Of finding 1."""
    victim = tmp_path / "victim"
    store = LocalStore.create(tmp_path / "g", 8, {})
    if when == "after":
        store.add(vectors_of(0, 1), ["a"], [{}])
        (tmp_path / "g" / SEGMENT).rename(victim)
    else:
        victim.write_bytes(b"mine")
    before = victim.read_bytes()
    (tmp_path / "g" / SEGMENT).symlink_to(victim)
    with pytest.raises(OSError, match="is a link"):
        store.add(vectors_of(1, 1), ["b"], [{}])
    assert victim.read_bytes() == before


def test_bad_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no gallery: there is no gallery\.sqlite in it"):
        LocalStore(tmp_path)
    (tmp_path / "something").write_text("")
    with pytest.raises(FileExistsError, match="exists already and is not empty"):
        LocalStore.create(tmp_path, 8, {})
    for dimensions in (0, 2**17, 2**63, "8"):
        with pytest.raises(ValueError, match="dimensions of a gallery must be a whole number from 1 to 65,536"):
            LocalStore.create(tmp_path / "new", dimensions, {})
