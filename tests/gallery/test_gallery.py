"""One contract for every backend: what goes in is found, exactly; what is wrong is refused and changes nothing."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from forked import python
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from benchmarks.server import NoServer, start
from rankshot.gallery import Embedder, Gallery, milvus, register
from rankshot.gallery.local import LocalStore
from rankshot.models import Conv4
from rankshot.preprocess import Preprocess

DIMENSIONS = 6


def some(count, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def milvus_server(tmp_path):
    """A real Milvus server on this machine, where one can run."""
    if find_spec("milvus") is None:
        pytest.skip("the package milvus, a server to test with, is not installed")
    try:
        server = start(tmp_path / "milvus")
    except NoServer as error:
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture(params=["local", "faiss", "milvus-lite"])
def place(request, tmp_path):
    """Where to make a gallery."""
    if request.param == "local":
        return tmp_path / "g"
    if request.param == "faiss":
        pytest.importorskip("faiss", reason="faiss is not installed")
        return f"faiss:{tmp_path / 'g'}"
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    return str(tmp_path / "g.db")


@pytest.fixture
def gallery(place):
    with Gallery(place, dimensions=DIMENSIONS) as made:
        yield made


def test_the_nearest_by_brute_force(gallery):
    vectors = some(200)
    gallery.add(vectors, ids=[f"i{k}" for k in range(200)], metadata=[{"odd": bool(k % 2), "k": k} for k in range(200)])
    queries = some(20, seed=1)
    expected = (-(queries @ vectors.T)).argsort(1)
    for query, hits, order in zip(queries, gallery.search_each(queries, k=7), expected, strict=True):
        assert [hit.id for hit in hits] == [f"i{k}" for k in order[:7]]
        np.testing.assert_allclose([hit.similarity for hit in hits], vectors[order[:7]] @ query, atol=1e-6)
    for query, order in zip(queries[:2], expected[:2], strict=True):
        odd = [k for k in order if k % 2][:5]
        assert [hit.metadata["k"] for hit in gallery.search(query, 5, where={"odd": True})] == odd
        few = [k for k in order if k in (3, 50, 77)]
        assert [hit.metadata["k"] for hit in gallery.search(query, 9, where={"k": [3, 50, 77]})] == few
        assert [hit.metadata["k"] for hit in gallery.search(query, 2, where=lambda m: m["k"] > 150)] == [
            k for k in order if k > 150
        ][:2]


def test_where_its_network_computes(tmp_path, monkeypatch):
    with Gallery(tmp_path / "g", "conv4-omniglot", device="cpu") as gallery:
        assert gallery.embedder.device.type == "cpu"
    with Gallery.open(tmp_path / "g", device="cpu") as gallery:
        assert gallery.embedder.device.type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch finds no CUDA device here"):
        Gallery(tmp_path / "other", "conv4-omniglot", device="cuda")
    assert not (tmp_path / "other").exists()
    with pytest.raises(ValueError, match="torch finds no CUDA device here"):
        Gallery.open(tmp_path / "g", device="cuda")


def test_what_is_there_is_replaced_where_that_is_asked_for(gallery):
    vectors = some(4)
    gallery.add(vectors[:2], ids=["a", "b"], metadata=[{"n": 1}, {"n": 2}])
    with pytest.raises(ValueError, match="id 'b' is in the gallery already"):
        gallery.add(vectors[2:], ids=["b", "c"])
    gallery.search(vectors[0], 1)
    assert gallery.add(vectors[2:], ids=["b", "c"], replace=True).ids == ["b", "c"]
    found = {hit.id: hit for hit in gallery.search(vectors[2], 9)}
    assert (sorted(found), len(gallery)) == (["a", "b", "c"], 3)
    assert found["b"].similarity == pytest.approx(1, abs=1e-6)
    assert (found["b"].metadata, found["c"].metadata) == ({"n": 2}, {})  # it keeps its own, unless it gets others
    gallery.add(vectors[:1], ids=["b"], metadata=[{"m": 3}], replace=True)
    assert gallery.store.metadata("b") == {"m": 3}
    assert len(gallery.add(vectors[:1], replace=True).ids) == 1  # a number of its own: nothing is replaced
    assert len(gallery) == 4
    with pytest.raises(ValueError, match="id 'a' is given twice"):
        gallery.add(vectors[:2], ids=["a", "a"], replace=True)


def test_everything_that_is_there(gallery):
    gallery.add(some(30), ids=[f"i{k:02}" for k in range(30)], metadata=[{"odd": bool(k % 2), "k": k} for k in range(30)])
    gallery.delete("i03")
    assert sorted(gallery.items()) == [(f"i{k:02}", {"odd": bool(k % 2), "k": k}) for k in range(30) if k != 3]
    assert sorted(item.id for item in gallery.items({"k": [1, 3, 5]})) == ["i01", "i05"]
    assert len(list(gallery.items(lambda note: note["odd"]))) == 14


def test_in_another_process(place):
    """Which has nothing in memory of what the first one did."""
    code = (
        "import sys, numpy as np; from rankshot import Gallery\n"
        "with Gallery.open(sys.argv[1]) as gallery:\n"
        "    print(len(gallery), gallery.search(np.eye(6)[1], 1)[0].id)\n"
        "    gallery.add(np.eye(6)[2:3], ids=['more'])\n"
        "    gallery.delete('i0')\n"
    )
    with Gallery(place, dimensions=DIMENSIONS) as gallery:
        gallery.add(np.eye(6)[:2], ids=["i0", "i1"])
    done = python(code, place)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 i1\n", "")
    again = python(code, place)
    assert again.stdout == "2 i1\n"
    assert "UnknownId" in again.stderr or "'more'" in again.stderr


def test_a_file_is_let_go_also_when_it_cannot_be_opened(tmp_path):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    file = str(tmp_path / "g.db")
    Gallery(file, dimensions=DIMENSIONS).close()
    with pytest.raises(FileExistsError, match="exists already"):
        Gallery(file, dimensions=DIMENSIONS)
    code = "import sys; from rankshot import Gallery; print(len(Gallery.open(sys.argv[1])))"
    done = python(code, file)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "delete", "again"]), st.integers(1, 5)), max_size=8), st.integers(0, 9))
def test_a_history_of_additions_and_deletions(tmp_path_factory, history, seed):
    """Against a dictionary, opened anew at the end."""
    folder = tmp_path_factory.mktemp("g") / "g"
    gallery, expected, number = Gallery(folder, dimensions=DIMENSIONS), {}, 0
    random = np.random.default_rng(seed)
    for what, count in history:
        if what == "add":
            ids = [f"i{number + k}" for k in range(count)]
            vectors = some(count, seed=number)
            gallery.add(vectors, ids=ids)
            expected |= dict(zip(ids, vectors, strict=True))
            number += count
        elif expected:
            chosen = random.choice(sorted(expected), min(count, len(expected)), replace=False).tolist()
            gallery.delete(chosen)
            gone = {each: expected.pop(each) for each in chosen}
            if what == "again":
                gallery.add(list(gone.values()), ids=list(gone))
                expected |= gone
    for each in (gallery, Gallery.open(folder)):
        assert len(each) == len(expected)
        assert {hit.id for hit in each.search(np.ones(DIMENSIONS), k=100)} == set(expected)
        for id, vector in expected.items():
            assert each.search(vector, 1)[0].similarity == pytest.approx(1, abs=1e-6)
            assert id in each


def test_many_images_by_faiss(tmp_path):
    pytest.importorskip("faiss", reason="faiss is not installed")
    vectors = np.random.default_rng(0).normal(size=(25_000, 16)).astype(np.float32)
    with Gallery(tmp_path / "g", dimensions=16) as gallery:
        gallery.add(vectors)
        gallery.delete(["5"])
        exact = gallery.search_each(vectors[:50], k=10)
    with Gallery.open(f"faiss:{tmp_path / 'g'}") as gallery:
        found = gallery.search_each(vectors[:50], k=10)
        same = [
            len({hit.id for hit in one} & {hit.id for hit in other}) / 10 for one, other in zip(exact, found, strict=True)
        ]
        assert np.mean(same) > 0.95
        assert found[5][0].id != "5"
        assert len(gallery.search(vectors[0], 1500)) == 1500
        gallery.add(vectors[5:6], ids=["five"])
        assert gallery.search(vectors[5], 1)[0].id == "five"


def test_ids_of_any_kind(gallery):
    ids = ["Mike's.png", 'a "b" c', "C:\\new\\tab.png", "zz','a", "ü/日本.png", "a b%20c", "line\nbreak", "caf\udce9.png"]
    gallery.add(some(len(ids)), ids=ids, metadata=[{"name": f'it\'s "{k}"'} for k in range(len(ids))])
    assert all(each in gallery for each in ids)
    assert [gallery.search(each, 1)[0].id for each in some(len(ids))] == ids
    assert gallery.search(some(1)[0], 5, where={"name": 'it\'s "3"'})[0].id == ids[3]
    with pytest.raises(ValueError, match="is in the gallery already"):
        gallery.add(some(1), ids=[ids[2]])
    gallery.delete(ids[:4])
    assert {hit.id for hit in gallery.search(some(1)[0], 20)} == set(ids[4:])


def test_more_like_these(gallery):
    gallery.add(np.eye(DIMENSIONS), ids=list("abcdef"))
    hits = gallery.search([np.eye(DIMENSIONS)[0], [0.0, 1, 0, 0, 0, 0]], k=2)
    assert {hit.id for hit in hits} == {"a", "b"}
    assert hits[0].similarity == pytest.approx(0.5**0.5)
    for length in (3.0, 1e300, 1e-300):
        assert gallery.search([0.0, 0, length, 0, 0, 0], np.int64(1))[0].similarity == pytest.approx(1)
    assert gallery.search(torch.eye(DIMENSIONS)[3:5], 2)[0].id in ("d", "e")


def test_duplicates(gallery):
    vectors = some(50)
    twins = vectors[[3, 9, 9]] + 1e-4 * some(3, seed=5)
    gallery.add(np.concatenate([vectors, twins]), ids=[f"i{k:02}" for k in range(53)])
    found = {(each.id, each.other) for each in gallery.duplicates(0.999)}
    assert found == {("i03", "i50"), ("i09", "i51"), ("i09", "i52"), ("i51", "i52")}
    gallery.add(np.tile(vectors[:1], (40, 1)), ids=[f"same{k}" for k in range(40)])
    assert len(gallery.duplicates(0.999)) == 4 + 41 * 40 // 2
    with pytest.raises(ValueError, match="similarity is a cosine"):
        gallery.duplicates(7)


def test_opened_again(gallery, place):
    gallery.add(some(30), metadata=[{"k": k} for k in range(30)])
    gallery.delete(["3", "4"])
    gallery.close()
    with Gallery.open(place) as again:
        assert len(again) == 28
        assert "3" not in again
        assert "5" in again
        assert again.search(some(30)[7], 1)[0].metadata == {"k": 7}
        again.add(some(1, seed=8), ids=["3"])
        assert again.search(some(1, seed=8)[0], 1)[0].id == "3"
    with pytest.raises(FileExistsError):
        Gallery(place, dimensions=DIMENSIONS)
    gallery.store = Gallery.open(place).store  # for the fixture to close


def test_a_copy(gallery, tmp_path):
    gallery.add(some(9), ids=list("abcdefghi"), metadata=[{"k": k} for k in range(9)])
    gallery.delete("c")
    gallery.save(tmp_path / "copy")
    copy = Gallery.open(tmp_path / "copy")
    assert len(copy) == 8
    for one, other in zip(copy.search_each(some(4, seed=3), 8), gallery.search_each(some(4, seed=3), 8), strict=True):
        assert [(hit.id, hit.metadata) for hit in one] == [(hit.id, hit.metadata) for hit in other]
        np.testing.assert_allclose([hit.similarity for hit in one], [hit.similarity for hit in other], atol=1e-6)
    temporary = Gallery(dimensions=DIMENSIONS)
    temporary.add(some(2))
    assert [hit.id for hit in temporary.search(some(1)[0], 1)] == ["0"]
    with pytest.raises(FileExistsError, match="exists already"):
        temporary.save(tmp_path / "copy")


def test_images(tmp_path):
    torch.manual_seed(0)
    embedder = Embedder(Conv4(in_channels=3, filters=4), Preprocess(3, 16, 16))
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{k}.png" for k in range(5)]
    for path in paths:
        Image.fromarray(random.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(path)
    (tmp_path / "broken.jpg").write_bytes(b"nothing")
    gallery = Gallery(tmp_path / "g", embedder)
    added = gallery.add([*paths[:3], tmp_path / "broken.jpg", *paths[3:]])
    assert added.ids == [str(path) for path in paths]
    assert [failure.name for failure in added.failures] == [str(tmp_path / "broken.jpg")]
    assert gallery.search(paths[2], 1)[0].id == str(paths[2])
    assert gallery.search(np.asarray(Image.open(paths[4])), 1)[0].id == str(paths[4])
    both = embedder(paths[:2]).mean(0)
    assert gallery.search([paths[0], Image.open(paths[1])], 5) == gallery.search(both, 5)
    assert len(gallery.search_each(paths, 2)) == 5

    other = Embedder(Conv4(in_channels=3, filters=4), Preprocess(3, 16, 16), name="another")
    message = rf"made with Conv4 \({embedder.fingerprint}\), whose vectors are not those of another \({other.fingerprint}\)"
    with pytest.raises(ValueError, match=message):
        Gallery.open(tmp_path / "g", other)
    assert Gallery.open(tmp_path / "g", embedder).search(paths[2], 1)[0].id == str(paths[2])
    with pytest.raises(FileNotFoundError, match="this gallery was made with Conv4; where it has moved, open with it"):
        Gallery.open(tmp_path / "g").search(paths[2], 1)


def test_a_network_that_comes_with_the_package(tmp_path):
    characters = [np.eye(28, dtype=np.uint8)[None] * 255, np.eye(28, dtype=np.uint8)[None, ::-1] * 255]
    Gallery(tmp_path / "g", "conv4-omniglot").add(characters, ids=["down", "up"])
    assert Gallery.open(tmp_path / "g").search(characters[1], 1)[0].id == "up"


WRONG = [
    (lambda g: g.add(some(2), ids=["x", "x"]), ValueError, "id 'x' is given twice"),
    (lambda g: g.add(some(2), ids=["x", "a"]), ValueError, "id 'a' is in the gallery already"),
    (lambda g: g.add(some(2), ids=["x", ""]), TypeError, "an id must be a string that is not empty, got ''"),
    (lambda g: g.add(some(2), ids=["x"]), ValueError, "as many ids as images, 2, got 1"),
    (lambda g: g.add(some(2), metadata=[{}]), ValueError, "as many metadata as images, 2, got 1"),
    (lambda g: g.add(some(1), metadata=[{"x": {1, 2}}]), ValueError, "metadata must be what JSON can hold"),
    (lambda g: g.add(some(1), metadata=[{"x": np.nan}]), ValueError, "metadata must be what JSON can hold"),
    (lambda g: g.add(some(1), metadata=[{"x": "x" * 2**20}]), ValueError, "metadata may have 1,048,576 characters"),
    (lambda g: g.add(np.full((1, DIMENSIONS), np.nan)), ValueError, "vectors must be finite, number 0 is not"),
    (lambda g: g.add(np.zeros((1, 3))), ValueError, "vectors must have 6 dimensions, got 3"),
    (lambda g: g.add(["picture.png"]), ValueError, "holds vectors that were made elsewhere"),
    (lambda g: g.delete(["a", "nobody"]), KeyError, "there is no 'nobody' among the 2 images"),
    (lambda g: g.search(some(1)[0], 0), ValueError, "k must be a whole number of 1 or more, got 0"),
    (lambda g: g.search([], 1), ValueError, "there is nothing to look for"),
]


def test_what_is_wrong_changes_nothing(gallery):
    gallery.add(some(2), ids=["a", "b"])
    for act, error, message in WRONG:
        with pytest.raises(error, match=message):
            act(gallery)
    assert len(gallery) == 2
    assert {hit.id for hit in gallery.search(some(1)[0], 10)} == {"a", "b"}


def test_all_of_it_on_a_milvus_server(milvus_server, monkeypatch):
    """The same contract, in a collection each; then the server goes away."""
    for number, contract in enumerate((test_the_nearest_by_brute_force, test_what_is_wrong_changes_nothing)):
        with Gallery(f"{milvus_server.uri}/g{number}", dimensions=DIMENSIONS) as gallery:
            contract(gallery)
    uri = f"{milvus_server.uri}/again"
    gallery = Gallery(uri, dimensions=DIMENSIONS)
    test_opened_again(gallery, uri)
    with pytest.raises(ValueError, match="a collection must be called like a variable, got 'not-a-name'"):
        Gallery(f"{milvus_server.uri}/not-a-name", dimensions=DIMENSIONS)
    with pytest.raises(FileNotFoundError, match="is no gallery: there is no collection 'nothing'"):
        Gallery.open(f"{milvus_server.uri}/nothing")
    milvus_server.stop()
    monkeypatch.setattr(milvus, "PAUSES", (0.1, 0.2))
    with pytest.raises(ConnectionError, match=r"Milvus at http://127.0.0.1.*; nothing was (added|changed)"):
        gallery.add(some(2, seed=5), ids=["x", "y"])
    with pytest.raises(ConnectionError, match=r"Milvus at http://127.0.0.1.*nothing was changed"):
        Gallery.open(uri)


def test_empty(gallery):
    assert gallery.search(some(1)[0], 3) == []
    assert gallery.add([]).ids == []
    assert gallery.duplicates() == []
    with pytest.raises(ValueError, match="needs the dimensions of its vectors, got None"):
        Gallery()


def test_an_unknown_store_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("nosuch:g", Path("nosuch:g"), "nosuch:g.db"):
        with pytest.raises(ValueError, match=r"no gallery store 'nosuch', only 'faiss'.*--load FILE.* \./nosuch:g"):
            Gallery(place, dimensions=2)
        with pytest.raises(ValueError, match="no gallery store 'nosuch'"):
            Gallery.open(place)
    with Gallery("./nosuch:g", dimensions=2) as gallery:
        gallery.add([[1.0, 0.0]], ids=["right"])
        with pytest.raises(ValueError, match="no gallery store 'other'"):
            gallery.save("other:copy")
    assert [path.name for path in tmp_path.iterdir()] == ["nosuch:g"]
    for place in ("nosuch:g", tmp_path / "nosuch:g"):  # it is there
        with Gallery.open(place) as gallery:
            assert "right" in gallery
    with Gallery("c:g", dimensions=2) as gallery:  # a drive of Windows
        assert len(gallery) == 0


def test_a_copy_in_a_store_of_one_s_own(tmp_path):
    @register("elsewhere")
    class Elsewhere(LocalStore):
        def __init__(self, place):
            super().__init__(tmp_path / place)

        @classmethod
        def create(cls, place, dimensions, about):
            return super().create(tmp_path / place, dimensions, about)

    with Gallery(dimensions=2) as gallery:
        gallery.add([[1.0, 0.0]], ids=["right"])
        gallery.save("elsewhere:copy")
    assert (tmp_path / "copy").is_dir()
    with Gallery.open("elsewhere:copy") as gallery:
        assert "right" in gallery
