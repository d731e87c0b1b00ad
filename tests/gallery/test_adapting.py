"""A gallery that ranks better by what its metadata tell: from vectors and from images, in every kind of place."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
from pictures import write
from PIL import Image

from rankshot import RankingTransformer, wrap
from rankshot.data import load
from rankshot.gallery import Embedder, Gallery, adapt
from rankshot.gallery.kept_map import MAP, NETWORK
from rankshot.gallery.rescuing import rescue
from rankshot.gallery.store import UnknownId

WIDTH = 16


def hidden_classes(classes=12, rows=10, useful=4, seed=0):
    """Classes that differ in a few of many dimensions: the others are noise, and larger."""
    generator = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), rows)
    told = generator.normal(size=(classes, useful))[y] + 0.3 * generator.normal(size=(len(y), useful))
    noise = 3.0 * generator.normal(size=(len(y), WIDTH - useful))
    return np.concatenate([told, noise], 1) @ np.linalg.qr(generator.normal(size=(WIDTH, WIDTH)))[0], y


X, Y = hidden_classes()
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
LEARNED = Y < 8
IDS = [f"v{row:03}" for row in range(len(X))]


def fill(gallery, *, labels=True, marks=False):
    """Of two thirds of the classes it is known which they are, or some marks; of the others nothing."""
    notes = [{"kind": f"k{label}"} if labels and known else {} for label, known in zip(Y, LEARNED, strict=True)]
    gallery.add(X, IDS, [{**note, "truth": int(label)} for note, label in zip(notes, Y, strict=True)])
    generator = np.random.default_rng(1)
    for row in np.flatnonzero(LEARNED) if marks else ():
        right = generator.choice(np.flatnonzero((Y[row] == Y) & (np.arange(len(Y)) != row)), 3, replace=False)
        wrong = generator.choice(np.flatnonzero((Y[row] != Y) & LEARNED), 3, replace=False)
        gallery.mark(IDS[row], [IDS[each] for each in right], [IDS[each] for each in wrong])


def quick(**options):
    """What learns little, in no time."""
    return RankingTransformer(random_state=0, max_iter=2, **options)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def vectors(place):
    with Gallery("g", dimensions=WIDTH) as gallery:
        fill(gallery)
    return place


def unseen_map(uri, **options):
    """Mean average precision of searches for images of classes that nothing was told of."""
    with Gallery.open(uri, **options) as gallery:
        found = gallery.search_each(X[~LEARNED], len(gallery))
    precisions = []
    for own, label, hits in zip(np.array(IDS)[~LEARNED], Y[~LEARNED], found, strict=True):
        is_right = np.array([hit.metadata["truth"] == label for hit in hits if hit.id != own])
        precisions.append((np.cumsum(is_right) / np.arange(1, len(is_right) + 1))[is_right].mean())
    return np.mean(precisions)


def content(uri, **options):
    with Gallery.open(uri, **options) as gallery:
        assert gallery.store.verify() == []
        chunks = list(gallery.store.chunks())
        return sorted(
            (id, vector.tolist(), note, source) for chunk in chunks for id, vector, note, source in zip(*chunk, strict=True)
        )


def test_by_classes(vectors):
    before, told = content("g"), []
    done = adapt("g", "new", label="kind", transformer=quick(), tell=told.append)
    assert (done.images, done.labelled, done.classes, done.marks, done.gone) == (120, 80, 8, 0, 0)
    assert done.after > done.before + 0.2
    assert not done.is_identity
    assert told == [120]
    assert unseen_map("new") > unseen_map("g") + 0.2
    assert content("g") == before
    assert [(id, note) for id, _, note, _ in content("new")] == [(id, note) for id, _, note, _ in before]
    assert sorted(path.name for path in vectors.iterdir()) == ["g", "new"]


def test_it_takes_the_vectors_that_the_original_takes(vectors):
    done = adapt("g", "new", label="kind", transformer=quick(n_components=5))
    assert done.transformer.n_components == 5
    with Gallery.open("new") as gallery:
        assert gallery.store.dimensions == 5
        for query in (X[3], X[3].tolist(), X[3:4], 100 * X[3]):
            hit = gallery.search(query, 1)[0]
            assert (hit.id, hit.similarity) == ("v003", pytest.approx(1, abs=1e-6))
        np.testing.assert_allclose(gallery.store.vector("v003"), done.transformer.transform(UNIT)[3], atol=1e-6)
        both = gallery.search(X[2:4], 2)
        assert {hit.id for hit in both} <= set(IDS)
        gallery.add(2 * X[:2], ["more", "still more"])
        assert {hit.id for hit in gallery.search(X[0], 2)} == {"v000", "more"}
        for wrong in (X[:1, :5], [[1.0] * 5]):
            with pytest.raises(ValueError, match="vectors must have 16 dimensions, got 5"):
                gallery.add(wrong)
        with pytest.raises(ValueError, match="give vectors, not images"):
            gallery.add(["photo.png"])
        assert gallery.duplicates(0.999999)[0][:2] in (("more", "v000"), ("still more", "v001"))


@pytest.mark.slow  # hundreds of updates, four times over
@pytest.mark.parametrize(("rate", "gain"), [(None, 0.0), (0.03, 0.05)])  # as it comes; and faster, which suits much noise
def test_by_marks_alone(place, rate, gain):
    with Gallery("g", dimensions=WIDTH) as gallery:
        fill(gallery, labels=False, marks=True)
    done = adapt("g", "new", transformer=RankingTransformer(random_state=0, learning_rate=rate))
    assert (done.labelled, done.classes) == (0, 0)
    assert done.marks > 300
    assert done.after > done.before
    assert unseen_map("new") > unseen_map("g") + gain


def test_by_both(place):
    with Gallery("g", dimensions=WIDTH) as gallery:
        fill(gallery, marks=True)
    done = adapt("g", "new", label="kind", transformer=quick())
    assert (done.classes, done.marks > 300) == (8, True)
    assert unseen_map("new") > unseen_map("g") + 0.2


def test_adapted_again_when_there_are_more(vectors):
    adapt("g", "new", label="kind", transformer=quick())
    with Gallery.open("g") as gallery:
        gallery.add(X[:1], ["late"], [{"kind": "k0", "truth": 0}])
    with pytest.raises(FileExistsError, match="new exists already: name a new folder"):
        adapt("g", "new", label="kind", transformer=quick())
    assert adapt("g", "newer", label="kind", transformer=quick()).images == 121
    for uri in ("new", "./new"):
        with pytest.raises(ValueError, match="new is adapted already: adapt the gallery that it was made of"):
            adapt(uri, "third", label="kind")
    with pytest.raises(FileExistsError, match="g exists already"):
        adapt("g", "g", label="kind", transformer=quick())
    with (
        Gallery.open("new") as gallery,
        pytest.raises(ValueError, match="is adapted: mark in the one that it was made of"),
    ):
        gallery.mark("v000", "v001")


def test_where_no_map_ranks_better_nothing_is_made(place):
    with Gallery("g", dimensions=3) as gallery:
        gallery.add(
            np.repeat(np.eye(3), 8, axis=0), metadata=[{"kind": label} for label in np.repeat([0, 1, 2], 8).tolist()]
        )
    with pytest.warns(UserWarning, match="X is kept as it is"):
        done = adapt("g", "new", label="kind")
    assert (done.is_identity, done.images, done.classes, done.before) == (True, 24, 3, pytest.approx(1))
    assert os.listdir() == ["g"]


def test_too_few_to_hold_any_out(place):
    with Gallery("g", dimensions=WIDTH) as gallery:
        gallery.add(X[[0, 1, 20, 21]], metadata=[{"kind": label} for label in "aabb"])
    with pytest.warns(UserWarning, match="too few rows to hold any out"):
        done = adapt("g", "new", label="kind")
    assert np.isnan([done.before, done.after]).all()
    assert len(Gallery.open("new")) == 4


def test_classes_of_any_kind(place):
    """1, "1", True and nothing at all: JSON holds them all."""
    with Gallery("g", dimensions=WIDTH) as gallery:
        labels = np.array([1, "1", True, None, 1.5], dtype=object)
        gallery.add(X[:50], metadata=[{"kind": labels[label]} for label in Y[:50]])
        gallery.add(X[50:60])
    done = adapt("g", "new", label="kind", transformer=quick())
    assert (done.images, done.labelled, done.classes) == (60, 40, 4)


@pytest.mark.parametrize("how", ["an exception", "a full disk"])
def test_half_way_leaves_nothing(vectors, monkeypatch, how):
    before = content("g")
    if how == "an exception":
        monkeypatch.setattr("rankshot.gallery.adapting.AT_ONCE", 50)

        def stop(done):
            assert sorted(os.listdir()) != ["g"]
            if done == 100:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            adapt("g", "new", label="kind", transformer=quick(), tell=stop)
    else:

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(RankingTransformer, "save_pretrained", full)
        with pytest.raises(OSError, match="No space left"):
            adapt("g", "new", label="kind", transformer=quick())
    assert os.listdir() == ["g"]
    assert content("g") == before


def test_copies_have_the_map_too(vectors):
    adapt("g", "new", label="kind", transformer=quick())
    expected = unseen_map("new")
    shutil.copytree("new", "copied")
    with Gallery.open("new") as gallery:
        gallery.save("saved")
    assert sorted(os.listdir("saved/map")) == sorted(os.listdir("new/map"))
    shutil.move("new", "moved")
    for uri in ("copied", "saved", "moved"):
        assert unseen_map(uri) == pytest.approx(expected)


def test_a_map_that_is_gone_or_another(vectors):
    adapt("g", "new", label="kind", transformer=quick())
    adapt("g", "other", label="kind", transformer=quick(held_out="rows"))
    expected = unseen_map("new")
    shutil.move("new/map", "map")
    with Gallery.open("new") as gallery:
        with pytest.raises(FileNotFoundError, match=r"adapted gallery is not in new/map: .* give map_folder="):
            gallery.search(X[0])
        assert len(list(gallery.items())) == 120
    assert unseen_map("new", map_folder="map") == pytest.approx(expected)
    shutil.copytree("other/map", "new/map")
    with Gallery.open("new") as gallery, pytest.raises(ValueError, match="holds another map than the one"):
        gallery.add(X[:1])
    shutil.rmtree("new/map")
    (vectors / "new" / "map").symlink_to(vectors / "map")
    with Gallery.open("new") as gallery, pytest.raises(OSError, match="links within such a folder are not followed"):
        gallery.add(X[:1])
    rescued, lost = rescue(vectors / "new", vectors / "rescued")
    rescued.close()
    assert lost == []
    assert unseen_map("rescued", map_folder="map") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("notes", "options", "message"),
    [
        ([{}] * 4, {}, "holds no marks of what is right and wrong, .*: there are no metadata at all"),
        ([{"b": 1}, {"a": 2}, {}, {}], {}, "holds no marks .*: there are 'a', 'b'"),
        ([{"b": 1}, {"a": 2}, {}, {}], {"label": "kind"}, "no image of g has metadata 'kind': there are 'a', 'b'"),
        ([{"kind": 1}] * 4, {"label": "kind"}, "must tell two classes or more.*: 4 images of g have it, of 1 classes"),
        ([{"kind": k} for k in range(4)], {"label": "kind"}, "some class of two images or more: 4 images of g have it"),
        ([{"kind": ["a"]}] * 4, {"label": "kind"}, "metadata 'kind' must be a text or a number, that of '0' is"),
        ([{"right": "yes"}, {}, {}, {}], {}, "marks of '0' must be a list of ids, its metadata 'right' are 'yes'"),
        ([{"bad": ["1"]}, {}, {}, {}], {"wrong": "bad"}, "only tell what is wrong: some must tell what is right"),
        ([{"right": ["1"]}, {"wrong": ["0"]}, {}, {}], {}, "'1' and '0' are marked as right and as wrong"),
        ([{"right": ["0"]}, {}, {}, {}], {}, "'0' and '0' are marked as right and as wrong"),
        ([{"right": ["9"]}, {}, {}, {}], {}, "holds no marks of what is right"),
        ([{"kind": k} for k in "aabb"], {"label": "kind", "network_to": "n"}, "keeps its network within: leave network_to"),
        (
            [{"kind": k} for k in "aabb"],
            {"label": "kind", "embedder": "conv4-cub"},
            "made with vectors that were made else",
        ),
    ],
)
def test_bad_input(place, notes, options, message):
    with Gallery("g", dimensions=WIDTH) as gallery:
        gallery.add(X[:4], metadata=notes)
    with pytest.raises(ValueError, match=message):
        adapt("g", "new", **options)
    assert os.listdir() == ["g"]


def test_no_gallery_and_an_empty_one(place):
    with pytest.raises(FileNotFoundError, match="g is no gallery"):
        adapt("g", "new", label="kind")
    Gallery("g", dimensions=3).close()
    with pytest.raises(ValueError, match="no image of g has metadata 'kind': there are no metadata at all"):
        adapt("g", "new", label="kind")


# Marks.


@pytest.fixture(params=["folder", "faiss", pytest.param("milvus", marks=pytest.mark.slow)])
def uri(request, place):
    if request.param != "folder":
        pytest.importorskip({"faiss": "faiss", "milvus": "milvus_lite"}[request.param], reason="it is not installed")
    return {"folder": "g", "faiss": "faiss:g", "milvus": "g.db"}[request.param]


def test_marks_are_kept_in_the_metadata(uri):
    with Gallery(uri, dimensions=WIDTH) as gallery:
        gallery.add(X[:5], list("abcde"), [{"n": n} for n in range(5)])
        before = {id: gallery.store.vector(id).tolist() for id in "abcde"}
        gallery.mark("a", right=["b", "c"], wrong="d")
        gallery.mark("a", right=["b"])  # once more
        assert gallery.store.metadata("a") == {"n": 0, "right": ["b", "c"], "wrong": ["d"]}
        gallery.mark("a", right=["d", "e"], wrong=["c"])
        assert gallery.store.metadata("a") == {"n": 0, "right": ["b", "d", "e"], "wrong": ["c"]}
        gallery.mark("b", wrong=["a"])  # of the same two, the other way round
        assert gallery.store.metadata("b") == {"n": 1, "wrong": ["a"]}
        assert gallery.store.metadata("a") == {"n": 0, "right": ["d", "e"], "wrong": ["c"]}
        gallery.mark("a", wrong=["d", "e"])
        assert gallery.store.metadata("a") == {"n": 0, "wrong": ["c", "d", "e"]}
        assert {id: gallery.store.vector(id).tolist() for id in "abcde"} == before
        assert len(gallery) == 5
        for bad, error, message in [
            ({"right": "z"}, UnknownId, "there is no 'z' among the 5 images"),
            ({"wrong": ["b", "z"]}, UnknownId, "there is no 'z'"),
            ({"right": ["a"]}, ValueError, "'a' cannot be marked with itself"),
            ({"right": ["b"], "wrong": ["b"]}, ValueError, "'b' cannot be both right and wrong"),
            ({}, ValueError, "give ids that were right, or wrong"),
        ]:
            with pytest.raises(error, match=message):
                gallery.mark("a", **bad)
        with pytest.raises(UnknownId, match="there is no 'z'"):
            gallery.mark("z", "a")
        gallery.add(X[:1], ["odd"], [{"right": 3}])
        with pytest.raises(ValueError, match="the marks of 'odd' must be a list of ids"):
            gallery.mark("odd", "a")
        assert gallery.store.metadata("a") == {"n": 0, "wrong": ["c", "d", "e"]}


def test_a_mark_changes_nothing_else(uri, place):
    """Nothing is embedded, and a file that has changed since is still noticed."""
    paths = [str(write(place / "photos" / f"{number}.png", number).relative_to(place)) for number in range(3)]
    with Gallery(uri, "conv4-omniglot", device="cpu") as gallery:
        gallery.add_files(paths)
    with Gallery.open(uri, device="cpu") as gallery:
        gallery.mark(paths[0], paths[1], paths[2])
        assert gallery._embedder is None
        done = gallery.add_files(paths)
        assert (done.ids, done.changed, done.there, done.unknown) == ([], [], 3, 0)
        write(place / "photos" / "0.png", 77)
        assert gallery.add_files(paths).changed == paths[:1]
        assert gallery.store.metadata(paths[0]) == {"right": paths[1:2], "wrong": paths[2:]}
        if not uri.endswith(".db"):
            assert gallery.store.verify() == []


def test_marks_by_several_threads(place):
    from concurrent.futures import ThreadPoolExecutor

    with Gallery("g", dimensions=WIDTH) as gallery:
        gallery.add(X[:21], IDS[:21])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda other: gallery.mark("v000", other), IDS[1:21]))
        assert sorted(gallery.store.metadata("v000")["right"]) == IDS[1:21]


def test_marks_of_images_that_are_gone_are_left_out(vectors):
    with Gallery.open("g") as gallery:
        gallery.mark("v000", ["v001", "v002"], ["v030"])
        gallery.mark("v005", "v002")
        gallery.delete("v002")
    done = adapt("g", "new", label="kind", transformer=quick())
    assert (done.images, done.marks, done.gone) == (119, 2, 2)


# Every kind of place.


def test_by_faiss(vectors):
    pytest.importorskip("faiss", reason="faiss is not installed")
    adapt("faiss:g", "faiss:new", label="kind", transformer=quick())
    assert unseen_map("faiss:new") > unseen_map("faiss:g") + 0.2
    assert content("faiss:new") == content("new")


@pytest.mark.slow
def test_in_milvus(vectors):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    with pytest.raises(ValueError, match=r"new.db is in no folder: name a new folder for its network, or its map"):
        adapt("g", "new.db", label="kind", transformer=quick())
    adapt("g", "new.db", label="kind", transformer=quick(), network_to="map-of-new")
    assert unseen_map("new.db") > unseen_map("g") + 0.2
    with pytest.raises(FileExistsError, match=r"new.db exists already: name a new place"):
        adapt("g", "new.db", label="kind", network_to="another")
    with pytest.raises(FileExistsError, match=r"map-of-new exists already: name a new folder"):
        adapt("g", "newer.db", label="kind", transformer=quick(), network_to="map-of-new")
    with Gallery.open("new.db") as gallery:
        gallery.save("back")
    adapt("g", "new", label="kind", transformer=quick())
    with Gallery.open("new") as gallery:
        gallery.save("saved.db")
    with Gallery.open("g") as gallery:
        gallery.save("g.db")
    adapt("g.db", "of-milvus", label="kind", transformer=quick())
    shutil.move("map-of-new", "elsewhere")
    for uri, options in (
        ("new.db", {"map_folder": "elsewhere"}),
        ("back", {"map_folder": "elsewhere"}),
        ("saved.db", {}),
        ("of-milvus", {}),
    ):
        assert unseen_map(uri, **options) == pytest.approx(unseen_map("new"), abs=1e-3)


# Images.


@pytest.fixture
def images(place, data_root):
    """Glyphs in files, each class a folder; of two thirds of the classes the gallery knows which they are."""
    glyphs = load("glyphs", root=data_root)
    for label in range(12):
        for number, index in enumerate(np.flatnonzero(glyphs.labels == label)[:6]):
            path = place / "glyphs" / f"{label:02}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.asarray(glyphs.images[index]).reshape(28, 28)).save(path)
    with Gallery("g", "conv4-omniglot", device="cpu") as gallery:
        for label in range(12):
            gallery.add_files(
                sorted((place / "glyphs" / f"{label:02}").glob("*.png")), {"kind": label} if label < 8 else {}
            )
    return place


def adapted(uri, to, **options):
    """Whatever the network has learned: these few glyphs it may rank well enough as it is."""
    learner = RankingTransformer(32, start="pca", random_state=0, max_iter=20)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "what is held out is ranked no better")
        return adapt(uri, to, label="kind", transformer=learner, **options)


def check_it_sees(uri, folder):
    """Its own images first, as they are; and new ones."""
    path = str(folder / "glyphs" / "03" / "1.png")
    with Gallery.open(uri, device="cpu") as gallery:
        count = len(gallery)
        hit = gallery.search(path, 1)[0]
        assert (hit.id, hit.similarity, hit.metadata) == (path, pytest.approx(1, abs=1e-5), {"kind": 3})
        np.testing.assert_allclose(gallery.embedder([path])[0], gallery.store.vector(path), atol=1e-5)
        new = write(folder / "more" / f"{count}.png", count)
        done = gallery.add_files([path, new])
        assert (done.ids, done.changed, done.there) == ([str(new)], [], 1)
        assert gallery.search(new, 1)[0].id == str(new)
        gallery.delete(str(new))
        return gallery.embedder


def test_images_are_seen_by_the_network_with_the_map_behind_it(images):
    before = content("g")
    done = adapted("g", "new")
    assert (done.images, done.labelled, done.classes) == (72, 48, 8)
    embedder = check_it_sees("new", images)
    assert (embedder.dimensions, embedder.name) == (32, "new/network")
    assert content("g") == before
    vectors = done.transformer.transform(np.array([vector for _, vector, _, _ in before]))
    np.testing.assert_allclose([vector for _, vector, _, _ in content("new")], vectors, atol=1e-5)
    with Gallery.open("new", device="cpu") as gallery:
        gallery.save("saved")
    shutil.move("new", "moved")
    assert check_it_sees("saved", images).fingerprint == embedder.fingerprint
    assert check_it_sees("moved", images).name == "moved/network"
    with pytest.raises(ValueError, match=r"this gallery was made with new/network .* whose vectors are not those of"):
        Gallery.open("moved", "conv4-omniglot")
    rescued, _ = rescue(images / "moved", images / "rescued")
    rescued.close()
    with Gallery.open("rescued", device="cpu") as gallery, pytest.raises(FileNotFoundError, match="where it has moved"):
        gallery.embedder  # noqa: B018
    with Gallery.open("rescued", "moved/network", device="cpu") as gallery:
        assert len(gallery.search(str(images / "glyphs" / "03" / "1.png"), 2)) == 2


def test_an_adapted_gallery_that_is_rebuilt_is_seen_by_that_network_alone(images):
    from rankshot.gallery import rebuild

    adapted("g", "new")
    rebuild("new", Embedder("conv4-omniglot", device="cpu"))
    with Gallery.open("new", device="cpu") as gallery:
        assert gallery.embedder.name == "conv4-omniglot"
        gallery.mark(*(item.id for item, _ in zip(gallery.items(), range(2), strict=False)))


def test_the_network_must_be_there_and_is_named_where_it_has_moved(images):
    Embedder("conv4-omniglot", device="cpu").save_pretrained("run")
    with Gallery("h", "run", device="cpu") as gallery:
        gallery.add_files(sorted((images / "glyphs").glob("0[0-3]/*.png")))
        for item in gallery.items():
            gallery.store.add(gallery.store.vector(item.id)[None], [item.id], [{"kind": item.id[-8:-6]}], replace=True)
    shutil.move("run", "elsewhere")
    with pytest.raises(FileNotFoundError, match="this gallery was made with run; where it has moved, open with it"):
        adapted("h", "new")
    adapted("h", "new", embedder="elsewhere")
    shutil.rmtree("elsewhere")
    with Gallery.open("new", device="cpu") as gallery:
        assert gallery.search(str(images / "glyphs" / "00" / "1.png"), 1)[0].similarity == pytest.approx(1, abs=1e-5)


def test_a_network_of_ones_own_cannot_be_opened_again_and_so_leaves_nothing(images):
    from torch import nn

    from rankshot import Preprocess

    own = Embedder(wrap(nn.Sequential(nn.Flatten(), nn.Linear(784, 40)), preprocess=Preprocess(1, 28, 28), name="mine"))
    with Gallery("h", own) as gallery:
        gallery.add_files(sorted((images / "glyphs").glob("0[0-3]/*.png")))
        ids = [item.id for item in gallery.items()]
        for start in range(0, len(ids), 6):
            gallery.mark(ids[start], ids[start + 1 : start + 6], ids[start - 1])
    before = sorted(os.listdir())
    with pytest.raises(ValueError, match="mine"):
        adapt("h", "new", embedder=own, transformer=quick(n_components=10, held_out=None))
    assert sorted(os.listdir()) == before


@pytest.mark.slow
def test_images_in_milvus(images):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    adapted("g", "new.db", network_to="network-of-new")
    assert check_it_sees("new.db", images).folder == images / "network-of-new"
    adapted("g", "new")
    with Gallery.open("new", device="cpu") as gallery:
        gallery.save("saved.db")
    assert check_it_sees("saved.db", images).folder == images / "new" / "network"


def test_what_a_folder_of_an_adapted_gallery_holds(images):
    adapted("g", "new")
    assert sorted(os.listdir(f"new/{NETWORK}")) == ["config.json", "model.safetensors"]
    assert not (images / "new" / MAP).exists()
    with Gallery.open("new", device="cpu") as gallery:
        about = gallery.store.about
    assert about["adapted"] == {"map": None, "folder": None}
    assert json.loads((images / "new" / NETWORK / "config.json").read_text())["model"]["name"] == "adapted"
