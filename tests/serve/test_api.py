"""The API as a client uses it: teach, recognise, review, undo, take along; what is wrong is said in one sentence."""

import io
import threading
import time
import zipfile

import httpx
import numpy as np
import pytest
from glyph_pictures import SHAPES, drawing

from rankshot import FewShotClassifier
from rankshot.serve.workspace import Refused
from rankshot.tensors import read_tensors, write_tensors
from serving import asked, running


def files(*contents, names=None):
    return [("pictures", ((names or {}).get(number, f"{number}.png"), each)) for number, each in enumerate(contents)]


def teach(client, shape, *seeds):
    made = client.post("/api/v1/classes", json={"name": shape})
    assert made.status_code == 201, made.text
    added = client.post(f"/api/v1/classes/{made.json()['id']}/examples", files=files(*(drawing(shape, s) for s in seeds)))
    assert added.status_code == 201, added.text
    return made.json()["id"], added.json()["ids"]


def taught(client):
    return {shape: teach(client, shape, 1, 2) for shape in ("cross", "stairs", "triangle")}


def test_from_nothing_to_a_recognised_drawing(client):
    empty = client.get("/api/v1/state").json()
    assert (empty["revision"], empty["classes"], empty["undo"]) == (0, [], None)
    refused = client.post("/api/v1/classify", files=files(drawing("cross", 9)))
    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "nothing is taught yet: give an example of a class first"},
    )
    ids = taught(client)
    found = client.post("/api/v1/classify", files=files(*(drawing(shape, 9) for shape in ids))).json()
    assert [answer["label"] for answer in found["answers"]] == list(ids)
    for shape, answer in zip(ids, found["answers"], strict=True):
        assert answer["class_id"] == ids[shape][0]
        assert answer["neighbours"][0]["example"] in ids[shape][1]
        assert answer["neighbours"][0]["class_name"] == shape
        shares = [each["probability"] for each in answer["probabilities"]]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
    state = client.get("/api/v1/state").json()
    assert [(each["name"], len(each["examples"])) for each in state["classes"]] == [(shape, 2) for shape in ids]
    picture = client.get(f"/api/v1/examples/{ids['cross'][1][0]}/picture")
    assert (picture.content, picture.headers["content-type"]) == (drawing("cross", 1), "image/png")


def test_none_of_these(client):
    taught(client)
    line, cross = drawing("line", 3), drawing("cross", 9)
    found = client.post("/api/v1/classify", params={"reject": 0.05}, files=files(line, cross)).json()
    assert [answer["label"] for answer in found["answers"]] == [None, "cross"]
    assert found["answers"][0]["nearness"] < found["rejection"]["threshold"] <= found["answers"][1]["nearness"]
    cost = client.get("/api/v1/rejection", params={"reject": 0.05}).json()
    assert cost == found["rejection"]
    assert 0 <= cost["false_rejections"] <= 1
    assert client.post("/api/v1/classify", files=files(line)).json()["rejection"] is None
    assert "reject" in client.post("/api/v1/classify", params={"reject": 1}, files=files(line)).json()["error"]


def test_changes_are_undone_one_by_one(client):
    ids = taught(client)
    before = client.get("/api/v1/state").json()["classes"]
    cross, examples = ids["cross"]
    assert client.patch(f"/api/v1/classes/{cross}", json={"name": "saltire"}).status_code == 200
    assert client.delete(f"/api/v1/examples/{examples[0]}").status_code == 200
    assert client.delete(f"/api/v1/classes/{ids['stairs'][0]}").status_code == 200
    state = client.get("/api/v1/state").json()
    assert [each["name"] for each in state["classes"]] == ["saltire", "triangle"]
    assert state["undo"] == "remove class"
    assert client.get(f"/api/v1/examples/{examples[0]}/picture").status_code == 404
    undone = [client.post("/api/v1/undo").json()["undone"] for _ in range(3)]
    assert undone == ["remove class", "remove example", "rename class"]
    assert client.get("/api/v1/state").json()["classes"] == before


def test_review_tells_an_example_that_is_in_the_wrong_class(client):
    ids = {shape: teach(client, shape, 1, 2, 3) for shape in ("cross", "triangle")}
    assert client.get("/api/v1/review").json()["mistakes"] == []
    cross, triangle = ids["cross"][0], ids["triangle"][0]
    wrong = client.post(f"/api/v1/classes/{cross}/examples", files=files(drawing("triangle", 7))).json()["ids"][0]
    review = client.get("/api/v1/review").json()
    assert review["mistakes"] == [{"example": wrong, "class_id": cross, "taken_for": triangle}]
    assert review["mixed_up"] == [{"class_id": cross, "taken_for": triangle, "count": 1}]


def test_the_downloaded_classifier_answers_as_the_server(client, tmp_path):
    taught(client)
    asked = [drawing(shape, seed) for shape in SHAPES for seed in (20, 21, 22)]
    told = client.post("/api/v1/classify", files=files(*asked)).json()["answers"]
    archive = client.get("/api/v1/classifier.zip")
    assert archive.headers["content-type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(archive.content)).extractall(tmp_path)
    classifier = FewShotClassifier.from_pretrained(tmp_path / "classifier", device="cpu")
    shares = classifier.predict_proba(asked)
    for row, answer in zip(shares, told, strict=True):
        by_name = {each["name"]: each["probability"] for each in answer["probabilities"]}
        np.testing.assert_allclose(row, [by_name[name] for name in classifier.classes_], atol=1e-6)


def test_a_classifier_from_elsewhere_is_taken_in_and_undone(client, handwriting, tmp_path):
    taught(client)
    archive = client.get("/api/v1/classifier.zip").content
    asked = files(drawing("triangle", 20))
    before = client.post("/api/v1/classify", files=asked).json()["answers"][0]
    with running(handwriting, tmp_path / "other") as other, httpx.Client(base_url=other.address, timeout=30) as there:
        teach(there, "cross", 5)
        assert there.post("/api/v1/classifier.zip", content=archive).status_code == 201
        classes = there.get("/api/v1/state").json()["classes"]
        assert {each["name"]: len(each["examples"]) for each in classes} == {"cross": 3, "stairs": 2, "triangle": 2}
        came = classes[1]["examples"][0]["id"]
        without = there.get(f"/api/v1/examples/{came}/picture")
        assert (without.status_code, without.json()) == (404, {"error": "this example came without its picture"})
        after = there.post("/api/v1/classify", files=asked).json()["answers"][0]
        assert after["label"] == "triangle"
        similar = [each["neighbours"][0]["similarity"] for each in (before, after)]
        assert similar[0] == pytest.approx(similar[1], abs=1e-6)
        assert there.post("/api/v1/undo").json()["undone"] == "take in a classifier"
        assert [each["name"] for each in there.get("/api/v1/state").json()["classes"]] == ["cross"]


def test_a_classifier_of_other_vectors_is_refused(client, tmp_path):
    """Its checksum does not know of them; taken in, nothing could be recognised any more."""
    taught(client)
    zipfile.ZipFile(io.BytesIO(client.get("/api/v1/classifier.zip").content)).extractall(tmp_path)
    examples = tmp_path / "classifier" / "examples.safetensors"
    whole = read_tensors(examples)
    for wrong in (whole["vectors"][:, :7], 5 * whole["vectors"]):
        write_tensors(examples, {**whole, "vectors": wrong.contiguous()}, {})
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path in (tmp_path / "classifier").rglob("*"):
                if path.is_file():
                    archive.write(path, path.relative_to(tmp_path))
        assert client.post("/api/v1/classifier.zip", content=content.getvalue()).status_code == 400
    assert client.post("/api/v1/classify", files=files(drawing("cross", 9))).json()["answers"][0]["label"] == "cross"


def zip_of(name, each):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, each)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"no zip",
        zip_of("../../outside", "x"),
        zip_of("/etc/passwd", "x"),
        zip_of("classifier/deep/er/still", "x"),
        zip_of("classifier/classifier.json", "{}"),
        zip_of("classifier/classifier.json", "[" * 100_000),
    ],
    ids=["nothing", "outside", "absolute", "deep", "empty", "nested"],
)
def test_zips_that_are_no_classifier(untouched, content):
    answer = untouched.post("/api/v1/classifier.zip", content=content)
    assert answer.status_code == 400
    assert answer.json() == {"error": "this is no classifier that was downloaded from rankshot, or it is damaged"}
    assert untouched.get("/api/v1/state").json()["revision"] == 0


@pytest.fixture(scope="module")
def one_class(handwriting, tmp_path_factory):
    """A client of one server for all errors, which change nothing."""
    with asked(handwriting, tmp_path_factory.mktemp("one-class") / "workspace") as client:
        teach(client, "cross", 1)
        yield client


def test_pictures_that_are_none(client):
    class_id, _ = teach(client, "cross", 1)
    url = f"/api/v1/classes/{class_id}/examples"
    some = client.post(url, files=files(b"no picture", drawing("cross", 2), names={0: "../../etc/passwd"})).json()
    assert len(some["ids"]) == 1
    assert some["failures"][0]["name"] == "passwd"
    none = client.post(url, files=files(b"no picture"))
    assert none.status_code == 400
    assert none.json()["error"].startswith("0.png: ")
    asked = client.post("/api/v1/classify", files=files(b"", drawing("cross", 3))).json()["answers"]
    assert asked[0]["label"] is None
    assert asked[0]["error"]
    assert asked[1]["label"] == "cross"
    bomb = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (200_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0" + bytes(8)
    assert client.post(url, files=files(bomb)).status_code == 400
    assert len(client.get("/api/v1/state").json()["classes"][0]["examples"]) == 2


@pytest.mark.parametrize(
    ("ask", "status", "error"),
    [
        (lambda c: c.post("/api/v1/classes", json={"name": " "}), 400, "a class needs a name"),
        (lambda c: c.post("/api/v1/classes", json={}), 422, "name: Field required"),
        (lambda c: c.post("/api/v1/classes", content="{"), 422, ""),
        (lambda c: c.post("/api/v1/classes", json={"name": "cross"}), 409, "there is a class 'cross' already"),
        (lambda c: c.patch("/api/v1/classes/none", json={"name": "x"}), 404, "there is no such class"),
        (lambda c: c.delete("/api/v1/examples/none"), 404, "there is no such example"),
        (lambda c: c.post("/api/v1/classify"), 400, "give pictures as multipart/form-data"),
        (lambda c: c.post("/api/v1/classify", files=[("other", b"x")]), 400, "there is no picture in the request"),
        (lambda c: c.get("/api/v1/nothing"), 404, "Not Found"),
        (lambda c: c.get("/page/../api.py"), 404, ""),
        (lambda c: c.get("/page/..%2fapi.py"), 404, ""),
    ],
    ids=map(str, range(11)),
)
def test_errors_are_one_sentence(one_class, ask, status, error):
    before = one_class.get("/api/v1/state").json()
    answer = ask(one_class)
    assert answer.status_code == status
    assert error in answer.text
    assert "Traceback" not in answer.text
    assert "/" not in answer.json()["error"].replace("multipart/form-data", "") if answer.content else True
    assert one_class.get("/api/v1/state").json() == before


def test_who_waits_for_a_change_hears_of_it(client):
    revision = client.get("/api/v1/state").json()["revision"]
    heard = []

    def wait():
        heard.append(client.get("/api/v1/changes", params={"since": revision}).json())

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    assert heard == []
    client.post("/api/v1/classes", json={"name": "cross"})
    waiting.join(5)
    assert [each["name"] for each in heard[0]["classes"]] == ["cross"]
    assert client.get("/api/v1/changes", params={"since": 0}).json()["revision"] == 1  # at once


def test_a_workspace_has_one_server_and_outlives_it(serve, handwriting):
    with serve() as client:
        ids = taught(client)
        with pytest.raises(Refused, match="is open in another server"), serve():
            pass
    with serve() as client:
        assert [each["id"] for each in client.get("/api/v1/state").json()["classes"]] == [id for id, _ in ids.values()]


def test_the_description_of_the_api_and_the_page(client):
    described = client.get("/api/v1/openapi.json").json()
    assert set(described["paths"]["/api/v1/classes/{class_id}"]) == {"patch", "delete"}
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"
