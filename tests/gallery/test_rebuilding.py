"""Another network for all images of a gallery: whole or not at all, under the same ids."""

import os
import shutil

import numpy as np
import pytest
from forked import python
from pictures import write

from rankshot.gallery import Embedder, Gallery, Unreadable, rebuild
from rankshot.gallery.format_1 import KEPT
from rankshot.gallery.local import LocalStore


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Five files, and a gallery of four of them that was made by a network for letters; one was deleted."""
    monkeypatch.chdir(tmp_path)
    paths = [write(tmp_path / "photos" / f"{number}.png", number) for number in range(5)]
    with Gallery("g", "conv4-omniglot") as gallery:
        gallery.add([path.relative_to(tmp_path) for path in paths], metadata=[{"n": number} for number in range(5)])
        gallery.delete("photos/0.png")
    return tmp_path


def content(uri):
    with Gallery.open(uri) as gallery:
        assert gallery.store.verify() == []
        return {item.id: (item.metadata["n"], gallery.store.vector(item.id).tolist()) for item in gallery.items()}


def expected(numbers=range(1, 5), model="conv4-cub"):
    embedder = Embedder(model)
    return {f"photos/{n}.png": (n, embedder([f"photos/{n}.png"])[0].tolist()) for n in numbers}


def matches(found, wanted):
    assert found.keys() == wanted.keys()
    for id, (number, vector) in wanted.items():
        assert found[id][0] == number
        np.testing.assert_allclose(found[id][1], vector, atol=1e-6)


def test_in_the_place_of_the_old_one(photos):
    told = []
    assert rebuild("g", "conv4-cub", tell=told.append) == (4, [])
    assert told == [4]
    matches(content("g"), expected())
    with Gallery.open("g") as gallery:
        assert gallery.embedder.name == "conv4-cub"
        assert gallery.search("photos/3.png", 1)[0].id == "photos/3.png"
        write(photos / "photos" / "2.png", 77)
        write(photos / "photos" / "9.png", 9)
        done = gallery.add_files(["photos/2.png", "photos/3.png", "photos/9.png"])  # files are known as before
        assert (done.ids, done.changed, done.there) == (["photos/9.png"], ["photos/2.png"], 1)
    files = sorted(path.name for path in (photos / "g").iterdir() if path.suffix == ".f32" or path.name.startswith("."))
    assert len(files) == 1  # of vectors, and nothing that was left over
    rebuild("g", "conv4-omniglot")  # and back
    with Gallery.open("g") as gallery:
        assert (len(gallery), gallery.store.dimensions) == (5, 64)


def test_elsewhere(photos):
    before = content("g")
    assert rebuild("g", "conv4-cub", "new") == (4, [])
    matches(content("new"), expected())
    assert content("g") == before
    with pytest.raises(FileExistsError, match="new exists already: name a new folder"):
        rebuild("g", "conv4-cub", "new")


@pytest.mark.parametrize("to", [None, "new"])
def test_files_that_are_gone_or_unreadable(photos, to):
    before = content("g")
    (photos / "photos" / "3.png").write_bytes(b"nothing")
    with pytest.raises(Unreadable, match=r"1 of 4 images cannot be read: photos/3.png: no image"):
        rebuild("g", "conv4-cub", to)
    (photos / "photos" / "2.png").unlink()
    with pytest.raises(Unreadable, match=r"1 of 4 images cannot be read: photos/2.png: No such file"):
        rebuild("g", "conv4-cub", to)  # before anything is embedded
    assert content("g") == before
    assert not (photos / "new").exists()
    count, failures = rebuild("g", "conv4-cub", to, skip_missing=True)
    assert (count, sorted(failure.name for failure in failures)) == (2, ["photos/2.png", "photos/3.png"])
    matches(content(to or "g"), expected([1, 4]))


def test_a_gallery_that_changes_meanwhile_is_left_alone(photos):
    def add(_):
        with Gallery.open("g") as gallery:
            gallery.add(np.eye(64)[:1], ids=["late"], metadata=[{"n": 0}])

    with pytest.raises(ValueError, match="g was changed by somebody else meanwhile: nothing was replaced"):
        rebuild("g", "conv4-cub", tell=add)
    assert "late" in content("g")
    assert [path for path in (photos / "g").iterdir() if path.name.startswith((".", "vectors-"))] == []


def test_who_has_it_open_is_told(photos):
    with Gallery.open("g") as before:
        assert before.search("photos/1.png", 1)
        rebuild("g", "conv4-cub")
        for act in (lambda: before.search("photos/1.png", 1), lambda: before.delete("photos/1.png"), lambda: len(before)):
            with pytest.raises(ValueError, match="g was rebuilt since it was opened: open it again"):
                act()
    matches(content("g"), expected())


@pytest.mark.parametrize("moment", ["wait_for_folder", "json.dumps"])
def test_killed_in_the_middle(photos, moment):
    """Before its vectors are in their place, and before the transaction is committed."""
    before = content("g")
    code = (
        "import os, json; from rankshot.gallery import local, rebuild\n"
        "become = local.LocalStore.become\n"
        "def killed(*arguments):\n"
        f"    local.{moment} = lambda *_: os._exit(9)\n"
        "    become(*arguments)\n"
        "local.LocalStore.become = killed\n"
        "rebuild('g', 'conv4-cub')\n"
    )
    assert python(code).returncode == 9
    assert content("g") == before
    rebuild("g", "conv4-cub")
    matches(content("g"), expected())
    assert len(list((photos / "g").glob("vectors*"))) == 1
    assert not list((photos / "g").glob(".making-*"))


def test_copies_and_what_is_rescued_of_a_rebuilt_one(photos):
    from rankshot.gallery.rescuing import rescue

    rebuild("g", "conv4-cub")
    shutil.copytree("g", "copied")
    with Gallery.open("g") as gallery:
        gallery.save("saved")
    rescued, lost = rescue(photos / "g", photos / "rescued")
    rescued.close()
    assert lost == []
    for place in ("copied", "saved", "rescued"):
        matches(content(place), expected())


def test_none_left(photos):
    with Gallery.open("g") as gallery:
        gallery.delete([f"photos/{number}.png" for number in range(1, 5)])
    assert rebuild("g", "conv4-cub") == (0, [])
    with Gallery.open("g") as gallery:
        gallery.add(["photos/1.png"], metadata=[{"n": 1}])
    matches(content("g"), expected([1]))


def test_by_faiss(photos):
    pytest.importorskip("faiss", reason="faiss is not installed")
    assert rebuild("faiss:g", "conv4-cub") == (4, [])
    matches(content("faiss:g"), expected())


@pytest.mark.slow
def test_milvus_needs_a_new_place(photos):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    with Gallery.open("g") as gallery:
        gallery.save("g.db")
    with pytest.raises(ValueError, match=r"g.db is in no folder, and cannot be replaced as a whole: name a new place with"):
        rebuild("g.db", "conv4-cub")
    assert rebuild("g.db", "conv4-cub", "new.db") == (4, [])
    matches(content("new.db"), expected())
    with pytest.raises(FileExistsError, match=r"new.db exists already: name a new place"):
        rebuild("g.db", "conv4-cub", "new.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_gallery(photos):
    (photos / "g").chmod(0o500)
    with pytest.raises(PermissionError, match="g is read-only: name a new place with --to"):
        rebuild("g", "conv4-cub")
    (photos / "g").chmod(0o700)


def test_the_file_of_vectors_is_one_of_ours(photos):
    """A gallery from elsewhere cannot name any file there is."""
    import json
    import sqlite3

    from rankshot.gallery import Damaged

    assert not (photos / "g" / KEPT).exists()
    connection = sqlite3.connect(photos / "g" / "gallery.sqlite")
    (about,) = connection.execute("SELECT about FROM state").fetchone()
    for name in ("../vectors-00000000.f32", "/etc/passwd", 3):
        connection.execute("UPDATE state SET about = ?", (json.dumps({**json.loads(about), "vectors": name}),))
        connection.commit()
        with pytest.raises(Damaged, match="its vectors cannot be in"):
            LocalStore(photos / "g")
    connection.close()
