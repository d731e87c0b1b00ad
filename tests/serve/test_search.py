"""A gallery over HTTP: what is like a picture or several, what is twice there, and more of them."""

import io
import json
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from glyph_pictures import drawing
from PIL import Image

from rankshot import Gallery
from rankshot.gallery.store import NotAnswering
from serving import running

STORES = {"local": "{}/gallery", "faiss": "faiss:{}/gallery", "milvus-lite": "{}/gallery.db"}
in_every_store = pytest.mark.parametrize(
    "store", ["local", *(pytest.param(name, marks=pytest.mark.slow) for name in STORES if name != "local")]
)


@pytest.fixture
def store():
    """Where the pictures of the gallery are; tests that are about that have all of them."""
    return "local"


@pytest.fixture
def gallery(tmp_path, handwriting, store):
    if store != "local":
        pytest.importorskip(store.replace("-", "_"), reason=f"{store} is not installed")
    made = Gallery(STORES[store].format(tmp_path), handwriting)
    for shape in ("cross", "stairs", "triangle"):
        for seed in (1, 2, 3):
            path = tmp_path / "files" / f"{shape}-{seed}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(drawing(shape, seed))
            made.add([path], metadata=[{"shape": shape, "seed": seed}])
    yield made
    made.close()


@pytest.fixture
def client(gallery, handwriting, tmp_path):
    with (
        running(handwriting, tmp_path / "w", gallery=gallery) as server,
        httpx.Client(base_url=server.address, timeout=30) as client,
    ):
        yield client


def asked(*contents):
    return [("pictures", (f"{number}.png", each)) for number, each in enumerate(contents)]


def found(client, *contents, **options):
    answer = client.post("/api/v1/gallery/search", params=options, files=asked(*contents))
    assert answer.status_code == 200, answer.text
    return answer.json()["hits"]


@in_every_store
def test_search(client, gallery):
    assert client.get("/api/v1/state").json()["gallery"] == 9
    query = drawing("stairs", 9)
    hits = found(client, query, k=3)
    assert [hit["metadata"]["shape"] for hit in hits] == ["stairs"] * 3
    for hit, ours in zip(hits, gallery.search(query, 3), strict=True):
        assert (hit["name"], hit["similarity"]) == (Path(ours.id).name, pytest.approx(ours.similarity, abs=1e-6))
    crosses = found(client, query, where=json.dumps({"shape": ["cross"]}))
    assert [hit["metadata"]["shape"] for hit in crosses] == ["cross"] * 3
    assert found(client, drawing("cross", 8), drawing("cross", 9))[0]["metadata"]["shape"] == "cross"


def id_of(client, shape, seed):
    (hit,) = found(client, drawing(shape, seed), where=json.dumps({"shape": shape, "seed": seed}))
    return hit["id"]


@in_every_store
def test_from_one_picture_to_its_neighbours(client, tmp_path):
    id = id_of(client, "cross", 1)
    answer = client.get("/api/v1/gallery/neighbours", params={"id": id, "k": 2})
    assert {hit["name"] for hit in answer.json()["hits"]} == {"cross-2.png", "cross-3.png"}
    assert str(tmp_path) not in answer.text  # of this machine's folders nothing is told
    for what in ("picture", "thumbnail"):
        shown = client.get(f"/api/v1/gallery/{what}", params={"id": id})
        assert shown.headers["content-type"] == "image/jpeg"
        assert np.asarray(Image.open(io.BytesIO(shown.content))).shape == (105, 105, 3)


def test_files_that_are_not_in_the_gallery_stay_where_they_are(client, tmp_path):
    (tmp_path / "secret.png").write_bytes(drawing("cross", 1))
    for id in (str(tmp_path / "secret.png"), "/etc/passwd", str(tmp_path / "files" / ".." / "secret.png"), ""):
        for what in ("picture", "thumbnail", "neighbours"):
            answer = client.get(f"/api/v1/gallery/{what}", params={"id": id})
            assert (answer.status_code, answer.json()) == (404, {"error": "there is no such picture in the gallery"})
    id = id_of(client, "cross", 1)
    (tmp_path / "files" / "cross-1.png").write_bytes(b"root:x:0:0")  # what was a picture once may be anything now
    gone = client.get("/api/v1/gallery/picture", params={"id": id})
    assert gone.status_code == 404
    assert "root" not in gone.text


@in_every_store
def test_added_and_found_again(client, tmp_path):
    sent = [("pictures", ("../../new.png", drawing("line", 1))), ("pictures", ("broken.png", b"x"))]
    added = client.post("/api/v1/gallery/pictures", params={"metadata": '{"shape": "line"}'}, files=sent).json()
    assert [failure["name"] for failure in added["failures"]] == ["broken.png"]
    (id,) = added["ids"]
    assert "/" not in id
    assert len(list((tmp_path / "w" / "pictures").iterdir())) == 1
    assert found(client, drawing("line", 2), k=1)[0]["metadata"] == {"shape": "line", "name": "new.png"}
    assert client.get("/api/v1/gallery/picture", params={"id": id}).status_code == 200
    again = client.post("/api/v1/gallery/pictures", files=asked(drawing("line", 1))).json()["ids"]
    pairs = client.get("/api/v1/gallery/duplicates", params={"similarity": 0.9999}).json()["pairs"]
    assert {id, again[0]} in [{pair["id"], pair["other"]} for pair in pairs]


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("search", {"k": 0}, 422),
        ("search", {"k": 10**9}, 422),
        ("search", {"where": "[1]"}, 400),
        ("search", {"where": "{"}, 400),
        ("search", {"where": '{"a":' * 1500}, 400),
        ("search", {"where": '{"a": {"b": 1}}'}, 400),
        ("search", {"where": '{"a": [1, {"b": 1}]}'}, 400),
        ("search", {"where": '{"a": [[1]]}'}, 400),
        ("pictures", {"metadata": "1"}, 400),
        ("pictures", {"metadata": '{"a": NaN}'}, 400),
        ("pictures", {"metadata": '{"name": "mine"}'}, 400),
    ],
)
def test_bad_input(client, path, options, status, tmp_path):
    answer = client.post(f"/api/v1/gallery/{path}", params=options, files=asked(drawing("cross", 1)))
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert not (tmp_path / "w" / "pictures").exists()


@in_every_store
def test_a_filter_of_what_lies_within_is_refused_in_a_sentence(client):
    """Of pictures and of neighbours; what was added with such metadata is found all the same."""
    where = {"where": '{"a": {"b": 1}}'}
    notes = {"metadata": '{"a": {"b": 1}, "c": null}'}
    (id,) = client.post("/api/v1/gallery/pictures", params=notes, files=asked(drawing("line", 1))).json()["ids"]
    for answer in (
        client.post("/api/v1/gallery/search", params=where, files=asked(drawing("cross", 1))),
        client.get("/api/v1/gallery/neighbours", params={"id": id, **where}),
    ):
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("a filter compares texts, numbers, true, false and null")
    (hit,) = found(client, drawing("line", 1), where='{"c": null}')
    assert hit["metadata"] == {"a": {"b": 1}, "c": None, "name": "0.png"}


@in_every_store
def test_odd_metadata_is_answered(client, gallery, store):
    if store != "milvus-lite":  # which refuses halves of characters
        gallery.add([drawing("line", 1)], ["odd"], [{"\ud800": ["\udfff"], "name": "\ud800"}])  # by Python, which takes it
    for notes in (
        r'{"a": "\ud800"}',
        '{"a": 1e999}',
        '{"": ""}',
        '{"a": "\u0000"}',
        '{"a": 123456789012345678901234567890}',
    ):
        added = client.post("/api/v1/gallery/pictures", params={"metadata": notes}, files=asked(drawing("line", 1)))
        assert added.status_code in (201, 400)
        assert client.post("/api/v1/gallery/search", files=asked(drawing("line", 1))).status_code == 200
        where = client.post("/api/v1/gallery/search", params={"where": notes}, files=asked(drawing("line", 1)))
        assert where.status_code in (200, 400)


def test_without_a_gallery_there_is_no_search(serve):
    with serve() as client:
        assert client.get("/api/v1/state").json()["gallery"] is None
        assert client.post("/api/v1/gallery/search", files=asked(drawing("cross", 1))).status_code == 404


def test_a_gallery_that_does_not_answer(client, gallery, monkeypatch):
    """As one on a Milvus server that is away: whoever asks may try again, and is told nothing of where it is."""

    def away(*_, **__):
        asked_of_it.append(1)
        raise NotAnswering("Milvus at http://somewhere:19530: unavailable; nothing was changed")

    asked_of_it = []
    assert client.get("/api/v1/state").json()["gallery"] == 9
    for name in ("search", "add"):
        monkeypatch.setattr(gallery, name, away)
    monkeypatch.setattr(Gallery, "__len__", away)
    for path in ("search", "pictures"):
        answer = client.post(f"/api/v1/gallery/{path}", files=asked(drawing("cross", 1)))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json() == {"error": "the gallery does not answer: the server's log tells why"}
    asked_of_it.clear()
    monkeypatch.setattr("rankshot.serve.search.LEFT_ALONE", 2)
    for _ in range(3):
        assert client.get("/api/v1/state").json()["gallery"] == 9  # as it was; classes can be taught meanwhile
    assert len(asked_of_it) == 1  # and then it is left alone for a while
    monkeypatch.undo()
    time.sleep(2)
    client.post("/api/v1/gallery/pictures", files=asked(drawing("line", 1)))
    assert client.get("/api/v1/state").json()["gallery"] == 10
