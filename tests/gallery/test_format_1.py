"""Galleries of the first format open, and stay as they were beside what takes their place."""

import os
import resource
import zlib

import numpy as np
import pytest
from forked import Started
from gallery.adding import vectors_of
from gallery.format_1_files import write_format_1

from rankshot.gallery import Damaged, Gallery
from rankshot.gallery.format_1 import HEADER, ITEMS, JOURNAL, KEPT, RECORD, VECTORS, in_todays_format
from rankshot.gallery.local import LocalStore
from rankshot.gallery.rescuing import rescue

FILES = (HEADER, VECTORS, ITEMS, JOURNAL)


def block(number, count=2):
    return [(f"{number}{'ab'[k]}", vectors_of(number, count)[k], {"n": number}) for k in range(count)]


def opened(folder):
    return LocalStore(in_todays_format(folder))


def ids_in(store):
    return [id for chunk in store.chunks() for id in chunk.ids]


def test_an_old_gallery_is_carried_over_and_kept(tmp_path):
    write_format_1(tmp_path / "g", [("add", [block(0)]), ("add", [block(1), block(2)]), ("delete", [1, 4])])
    before = {name: (tmp_path / "g" / name).read_bytes() for name in FILES}
    for _ in range(2):  # the second finds today's
        with Gallery.open(tmp_path / "g") as gallery:
            assert ids_in(gallery.store) == ["0a", "1a", "1b", "2b"]
            assert np.array_equal(gallery.store.vector("2b"), vectors_of(2, 2)[1])
            assert gallery.store.metadata("1b") == {"n": 1}
            assert gallery.store.verify() == []
    assert {name: (tmp_path / "g" / KEPT / name).read_bytes() for name in FILES} == before
    assert sorted(each.name for each in (tmp_path / "g").iterdir()) == [KEPT, "gallery.sqlite", "vectors.f32"]


def test_an_empty_one(tmp_path):
    write_format_1(tmp_path / "g", [])
    assert len(opened(tmp_path / "g")) == 0


@pytest.mark.parametrize("cut", [1, 63, 64])
def test_a_change_that_was_never_finished_does_not_count(tmp_path, cut):
    write_format_1(tmp_path / "g", [("add", [block(0)]), ("add", [block(1), block(2)])])
    os.truncate(tmp_path / "g" / JOURNAL, 3 * 64 - cut)
    assert ids_in(opened(tmp_path / "g")) == ["0a", "0b"]


def test_a_record_that_never_reached_the_disk(tmp_path):
    write_format_1(tmp_path / "g", [("add", [block(0)]), ("add", [block(1), block(2)])])
    content = (tmp_path / "g" / JOURNAL).read_bytes()
    (tmp_path / "g" / JOURNAL).write_bytes(content[:64] + bytes(64) + content[128:])
    assert ids_in(opened(tmp_path / "g")) == ["0a", "0b"]


@pytest.mark.parametrize(
    ("name", "place", "lost", "told"),
    [
        (VECTORS, 70, ["1a", "1b"], "images 2 to 3 are damaged"),
        (ITEMS, 40, ["1a", "1b"], "images 2 to 3 are damaged"),
        (JOURNAL, 64 + 20, ["1a", "1b"], "a record of the journal is damaged"),
        (ITEMS, -8, [], "a deletion is damaged"),
    ],
)
def test_damage_is_told_and_the_rest_rescued(tmp_path, name, place, lost, told):
    write_format_1(tmp_path / "g", [("add", [block(number)]) for number in range(3)] + [("delete", [0])])
    content = bytearray((tmp_path / "g" / name).read_bytes())
    content[place] ^= 0x41
    (tmp_path / "g" / name).write_bytes(content)
    with pytest.raises(Damaged, match=f"{told}.*can be rescued"):
        opened(tmp_path / "g")
    rescued, complaints = rescue(tmp_path / "g", tmp_path / "new")
    assert any(told in each for each in complaints)
    deleted = [] if told == "a deletion is damaged" else ["0a"]
    assert ids_in(rescued) == [id for id in ("0a", "0b", "1a", "1b", "2a", "2b") if id not in lost + deleted]
    assert bytes(content) == (tmp_path / "g" / name).read_bytes()


@pytest.mark.parametrize(
    "header", ['{"format": 1}', '{"format": 9, "dimensions": 8, "about": {}}', "[]", "{", "[" * 100_000]
)
def test_a_bad_header(tmp_path, header):
    write_format_1(tmp_path / "g", [])
    (tmp_path / "g" / HEADER).write_text(header)
    with pytest.raises(ValueError, match=r"gallery\.json"):
        opened(tmp_path / "g")


def test_a_record_of_gigabytes_of_nothing(tmp_path):
    """Told by a journal of 64 bytes, in a file with holes."""
    write_format_1(tmp_path / "g", [("add", [block(0)])])
    record = np.frombuffer((tmp_path / "g" / JOURNAL).read_bytes(), RECORD).copy()
    record["length"] = 2**31
    record["own"] = zlib.crc32(record[0].tobytes()[:-4])
    (tmp_path / "g" / JOURNAL).write_bytes(record.tobytes())
    os.truncate(tmp_path / "g" / ITEMS, 2**32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Damaged, match="images 0 to 1 are damaged"):
        opened(tmp_path / "g")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19  # KiB


def test_links_are_refused(tmp_path):
    write_format_1(tmp_path / "g", [("add", [block(0)])])
    (tmp_path / "g" / VECTORS).rename(tmp_path / "elsewhere")
    (tmp_path / "g" / VECTORS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        opened(tmp_path / "g")


def test_two_processes_open_it_at_once(tmp_path):
    write_format_1(tmp_path / "g", [("add", [block(number)]) for number in range(9)])
    code = "import sys; from rankshot.gallery import Gallery\n" + (
        "try: print(len(Gallery.open(sys.argv[1])))\nexcept TimeoutError as error: print(error)"
    )
    both = [Started(code, tmp_path / "g") for _ in range(2)]
    told = [process.ended().stdout.strip() for process in both]
    assert all(each == "18" or "try again when it is done" in each for each in told)
    assert "18" in told
    assert len(opened(tmp_path / "g")) == 18
