"""What is intact of a damaged gallery, in a new one; an old one is in test_format_1."""

from gallery.adding import vectors_of

from rankshot.gallery.local import LocalStore
from rankshot.gallery.rescuing import rescue
from rankshot.gallery.segment import SEGMENT
from rankshot.gallery.store import Source


def test_all_but_the_damaged_block(tmp_path):
    store = LocalStore.create(tmp_path / "g", 8, {"embedder": 1})
    for number in range(4):
        names = [f"{number}a", f"{number}b"]
        store.add(vectors_of(number, 2), names, [{"n": number}] * 2, [Source(number, 2, "ab"), None])
    store.delete(["3a"])
    store.close()
    with (tmp_path / "g" / SEGMENT).open("r+b") as file:
        file.seek(70)
        file.write(b"\x00\xff")
    rescued, (lost,) = rescue(tmp_path / "g", tmp_path / "new")
    assert "images 2 to 3 are damaged" in lost
    assert [id for chunk in rescued.chunks() for id in chunk.ids] == ["0a", "0b", "2a", "2b", "3b"]
    assert rescued.metadata("2b") == {"n": 2}
    assert rescued.sources(["2a"]) == {"2a": Source(2, 2, "ab")}
    assert (rescued.about, rescued.verify()) == ({"embedder": 1}, [])
