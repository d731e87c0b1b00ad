"""Galleries that are moved, replaced, copied or linked while somebody uses them."""

import os
import shutil

import numpy as np
import pytest
from disks import grow, raised_by
from gallery.adding import vectors_of
from gallery.format_1_files import write_format_1

from rankshot.gallery import Damaged, Gallery
from rankshot.gallery.database import DATABASE
from rankshot.gallery.format_1 import HEADER, KEPT
from rankshot.gallery.local import LocalStore
from rankshot.gallery.rescuing import rescue
from rankshot.gallery.segment import SEGMENT


def made(folder, count=10):
    store = LocalStore.create(folder, 8, {})
    store.add(vectors_of(0, count), [f"i{k}" for k in range(count)], [{}] * count)
    return store


def block(number, count=2):
    return [(f"{number}{'ab'[k]}", vectors_of(number, count)[k], {"n": number}) for k in range(count)]


def ids_in(store):
    return [id for chunk in store.chunks() for id in chunk.ids]


def test_another_gallery_under_the_same_name_is_left_alone(tmp_path):
    """Vectors of one were written into the other's file, and both were damaged."""
    store = made(tmp_path / "g")
    (tmp_path / "g").rename(tmp_path / "old")
    other = made(tmp_path / "g", 20)
    for act in (lambda: store.add(vectors_of(1, 5), [None] * 5, [{}] * 5), lambda: store.search(vectors_of(0, 1), 3)):
        with pytest.raises(FileNotFoundError, match="was moved or replaced since it was opened: open it again"):
            act()
    assert (len(other), other.verify()) == (20, [])
    assert (len(LocalStore(tmp_path / "old")), LocalStore(tmp_path / "old").verify()) == (10, [])


def test_a_gallery_that_is_gone(tmp_path):
    store = made(tmp_path / "g")
    shutil.rmtree(tmp_path / "g")
    with pytest.raises(FileNotFoundError, match="was moved or replaced"):
        store.add(vectors_of(1, 1), [None], [{}])


def test_who_changes_folders_still_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Gallery(tmp_path / "g", dimensions=8).add(vectors_of(0, 10))
    with Gallery.open("g") as gallery:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert len(gallery.search(vectors_of(0, 1)[0], 3)) == 3
        gallery.add(vectors_of(5, 1), ["new"])
    assert len(LocalStore(tmp_path / "g")) == 11


@pytest.mark.parametrize("name", [SEGMENT, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"])
def test_a_file_that_has_another_name_elsewhere_is_not_written(tmp_path, name):
    made(tmp_path / "g").close()
    victim = tmp_path / "victim"
    victim.write_bytes((tmp_path / "g" / name).read_bytes() if (tmp_path / "g" / name).exists() else b"mine")
    before = victim.read_bytes()
    (tmp_path / "g" / name).unlink(missing_ok=True)
    os.link(victim, tmp_path / "g" / name)
    with pytest.raises(OSError, match="has another name elsewhere"):
        LocalStore(tmp_path / "g").add(vectors_of(1, 1), [None], [{}])
    assert victim.read_bytes() == before


@pytest.mark.parametrize("name", [f"{DATABASE}-wal", f"{DATABASE}-shm"])
def test_what_is_no_file_beside_the_database(tmp_path, name):
    made(tmp_path / "g").close()
    os.mkfifo(tmp_path / "g" / name)
    with pytest.raises(OSError, match="is no plain file"):
        LocalStore(tmp_path / "g")


def test_the_place_of_the_original_is_not_followed(tmp_path):
    """Old galleries are kept in a folder of their own: one that came with them, or a link, is not filled."""
    write_format_1(tmp_path / "g", [("add", [block(0)])])
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / HEADER).write_text("mine")
    (tmp_path / "g" / KEPT).symlink_to(tmp_path / "victim")
    with pytest.raises(Damaged, match="which no gallery of the first format has"):
        Gallery.open(tmp_path / "g")
    assert [(each.name, each.read_text()) for each in (tmp_path / "victim").iterdir()] == [(HEADER, "mine")]


def test_a_log_that_lies_beside_an_old_gallery_is_not_carried_out(tmp_path):
    write_format_1(tmp_path / "g", [("add", [block(0)])])
    (tmp_path / "g" / f"{DATABASE}-wal").write_bytes(b"somebody's")
    with pytest.raises(Damaged, match="which no gallery of the first format has"):
        Gallery.open(tmp_path / "g")


def test_rescued_is_what_counts_and_not_what_was_left_beside_it(tmp_path):
    """A process was killed when it had made the new gallery, and before it put the old one away."""
    write_format_1(tmp_path / "g", [("add", [block(0)])])
    shutil.copytree(tmp_path / "g", tmp_path / "old")
    Gallery.open(tmp_path / "g").close()
    shutil.rmtree(tmp_path / "g" / KEPT)
    shutil.copytree(tmp_path / "old", tmp_path / "g", dirs_exist_ok=True)
    with Gallery.open(tmp_path / "g") as gallery:
        gallery.delete("0a")
    rescued, lost = rescue(tmp_path / "g", tmp_path / "new")
    assert (ids_in(rescued), lost) == (["0b"], [])


@pytest.mark.parametrize("room", [*range(40, 200, 20)])
def test_an_old_gallery_on_a_disk_that_is_nearly_full(small_disk, room):
    disk = small_disk("2m")
    write_format_1(disk / "g", [("add", [block(number)]) for number in range(300)])
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room * 1024)))
    problem = raised_by(lambda: Gallery.open(disk / "g").close())
    (disk / "filler").unlink()
    grow(disk, "8m")
    with Gallery.open(disk / "g") as gallery:
        assert (len(gallery), gallery.store.verify()) == (600, [])
    assert problem is None or "No space left" in str(problem) or "written whole" in str(problem)


def test_a_copy_is_there_whole_or_not_at_all(small_disk):
    disk = small_disk("300k")
    source = Gallery(disk.with_name(disk.name + "-source"), dimensions=8)
    try:
        source.add(vectors_of(0, 9000), [f"i{k}" for k in range(9000)])
        with pytest.raises(OSError, match="No space left"):
            source.save(disk / "copy")
        assert list(disk.iterdir()) == []
        grow(disk, "8m")
        source.save(disk / "copy")
        assert len(Gallery.open(disk / "copy")) == 9000
    finally:
        source.close()
        shutil.rmtree(disk.with_name(disk.name + "-source"))


def test_all_of_a_gallery_is_of_one_moment(tmp_path, monkeypatch):
    monkeypatch.setattr("rankshot.gallery.local.ROWS_AT_ONCE", 4)
    store = made(tmp_path / "g")
    chunks = store.chunks()
    first = next(chunks)
    store.add(vectors_of(0, 1), ["i0"], [{}], replace=True)
    rest = [id for chunk in chunks for id in chunk.ids]
    assert first.ids + rest == [f"i{k}" for k in range(10)]


def test_a_picture_of_the_far_future(tmp_path):
    """Its time was more than could be read back, and the gallery could not be added to any more."""
    from pictures import write

    write(tmp_path / "photos" / "a.png")
    os.utime(tmp_path / "photos" / "a.png", (99_999_999_999, 99_999_999_999))
    for _ in range(2):
        gallery = Gallery.open(tmp_path / "g") if (tmp_path / "g").exists() else Gallery(tmp_path / "g", "conv4-cub")
        with gallery:
            gallery.add_files([tmp_path / "photos" / "a.png"])
            assert len(gallery) == 1
            assert np.isfinite(gallery.store.vector(str(tmp_path / "photos" / "a.png"))).all()
