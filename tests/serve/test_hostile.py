"""A server among enemies: 500 hostile images, and more classes than there may be."""

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from glyph_pictures import drawing

from benchmarks.measure import resident
from campaigns.image_files import hostile
from rankshot import FewShotClassifier


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of formats that Pillow will give up
def test_500_hostile_images(client):
    """Each has an answer: a class, or one sentence. The good picture beside it is recognised all the same."""
    made = client.post("/api/v1/classes", json={"name": "cross"}).json()["id"]
    client.post(f"/api/v1/classes/{made}/examples", files=[("pictures", drawing("cross", 1))])
    chance, before, good = random.Random(0), resident("VmRSS"), ("pictures", ("good.png", drawing("cross", 2)))
    for number in range(100):
        some = [("pictures", (f"{number}-{each}", hostile(chance)[0])) for each in range(5)]
        answer = client.post("/api/v1/classify", files=[*some, good], timeout=120)
        assert answer.status_code in (200, 400, 413), answer.text
        if answer.status_code == 200:
            *odd, fine = answer.json()["answers"]
            assert fine["label"] == "cross"
            assert all(each["label"] or each["error"] for each in odd)
            assert not any("Traceback" in (each["error"] or "") or "/" in (each["error"] or "") for each in odd)
    assert resident("VmRSS") - before < 2**30
    assert client.get("/api/v1/state").json()["revision"] == 2


def classifier_of(classes, embedder, folder):
    """As a zip: so many classes, of a random example each."""
    vectors = np.random.default_rng(0).normal(size=(classes, embedder.dimensions))
    saved = FewShotClassifier(embedder, rule="nearest").fit(vectors, [f"class {number}" for number in range(classes)])
    saved.save_pretrained(folder / str(classes))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted((folder / str(classes)).rglob("*")):
            if path.is_file():
                archive.write(path, Path("classifier", path.relative_to(folder / str(classes))))
    return content.getvalue()


def test_ten_thousand_classes(client, handwriting, tmp_path):
    """A thousand are taken, by name or by zip; more are refused, and leave nothing."""
    too_many = client.post("/api/v1/classifier.zip", content=classifier_of(10_000, handwriting, tmp_path))
    assert (too_many.status_code, too_many.json()) == (
        400,
        {"error": "there may be 1000 classes and 20000 examples in all"},
    )
    assert client.get("/api/v1/state").json()["classes"] == []
    assert client.post("/api/v1/classifier.zip", content=classifier_of(1000, handwriting, tmp_path)).status_code == 201
    one_more = client.post("/api/v1/classes", json={"name": "one more"})
    assert (one_more.status_code, one_more.json()) == (
        409,
        {"error": "there are 1000 classes already, and there may be no more"},
    )
    assert len(client.get("/api/v1/state").json()["classes"]) == 1000
