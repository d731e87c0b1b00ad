"""A taught classifier in a folder answers as before, and learns on."""

import json
import shutil

import numpy as np
import pytest
import torch

from rankshot import FewShotClassifier
from rankshot.gallery import Embedder
from rankshot.models import Conv4
from rankshot.preprocess import Preprocess

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (12, 20, 20), dtype=np.uint8)


def taught(embedder, labels, **settings):
    X = list(PICTURES) if embedder is not None else RANDOM.normal(size=(12, 5))
    return FewShotClassifier(embedder, **settings).fit(X, labels)


@pytest.mark.parametrize("labels", [list("aabbbccccddd"), [3, 3, 1, 1, 1, 2, 2, 2, 2, 9, 9, 9], [1.0] * 6 + [2.0] * 6])
@pytest.mark.parametrize(
    "settings", [{}, {"rule": "nearest"}, {"reject": 0.2}, {"threshold": 0.5, "unknown": "?"}], ids=str
)
def test_it_answers_as_before(tmp_path, labels, settings):
    classifier = taught(Embedder(Conv4(1, 4), Preprocess(1, 20, 20)), labels, **settings)
    again = FewShotClassifier.from_pretrained(classifier.save_pretrained(tmp_path / "kept"))
    new = list(RANDOM.integers(0, 256, (9, 20, 20), dtype=np.uint8))
    assert again.predict(new).tolist() == classifier.predict(new).tolist()
    assert again.classes_.dtype == classifier.classes_.dtype
    np.testing.assert_array_equal(again.predict_proba(new), classifier.predict_proba(new))
    assert again.neighbours(new, 2) == classifier.neighbours(new, 2)
    assert again.rejection_ == classifier.rejection_
    more = [labels[0]] * 3
    assert (
        again.partial_fit(new[:3], more).predict(new).tolist()
        == classifier.partial_fit(new[:3], more).predict(new).tolist()
    )


def test_of_vectors_alone(tmp_path):
    classifier = taught(None, list("aabbbccccddd"))
    again = FewShotClassifier.from_pretrained(classifier.save_pretrained(tmp_path / "kept"))
    X = RANDOM.normal(size=(20, 5))
    assert again.predict(X).tolist() == classifier.predict(X).tolist()
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["classifier.json", "examples.safetensors"]
    with pytest.raises(ValueError, match="5 features"):
        again.predict(X[:, :4])


def test_numbers_of_numpy(tmp_path):
    classifier = taught(None, np.array([1] * 6 + [2] * 6), threshold=np.float32(0.5), unknown=np.int64(-1))
    again = FewShotClassifier.from_pretrained(classifier.save_pretrained(tmp_path / "kept"))
    X = RANDOM.normal(size=(20, 5))
    assert again.predict(X).tolist() == classifier.predict(X).tolist()
    assert (again.threshold, again.unknown) == (0.5, -1)


def test_the_network_of_a_classifier_stays_its_own(tmp_path):
    for name in ("one", "other"):
        taught(Embedder(Conv4(1, 4), Preprocess(1, 20, 20)), list("aabbbccccddd")).save_pretrained(tmp_path / name)
    shutil.rmtree(tmp_path / "one" / "network")
    (tmp_path / "other" / "network").rename(tmp_path / "one" / "network")
    with pytest.raises(ValueError, match="is not the network that the examples were seen by"):
        FewShotClassifier.from_pretrained(tmp_path / "one")


def test_what_cannot_be_kept_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="`unknown` must be a text or a number to be saved"):
        taught(None, list("aabbbccccddd"), unknown=object()).save_pretrained(tmp_path / "kept")
    with pytest.raises(ValueError, match="not fitted"):
        FewShotClassifier().save_pretrained(tmp_path / "kept")
    of_somebody = taught(Embedder(torch.nn.Sequential(torch.nn.Flatten()), Preprocess(1, 20, 20)), list("aabbbccccddd"))
    with pytest.raises(ValueError, match="Sequential does not tell what it is"):
        of_somebody.save_pretrained(tmp_path / "new" / "kept")
    assert [path.name for path in tmp_path.rglob("*") if path.name != "new"] == []
    classifier = taught(None, list("aabbbccccddd"))
    classifier.save_pretrained(tmp_path / "kept")
    with pytest.raises(FileExistsError, match="exists already"):
        classifier.save_pretrained(tmp_path / "kept")


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no classifier: there is no classifier.json in it"):
        FewShotClassifier.from_pretrained(tmp_path)
    place = taught(None, list("aabbbccccddd")).save_pretrained(tmp_path / "kept")
    whole = json.loads((place / "classifier.json").read_text())
    for change in ({"names": ["one"]}, {"labels": "O"}, {"classes": ["a"]}, {"settings": None}):
        (place / "classifier.json").write_text(json.dumps({**whole, **change}))
        with pytest.raises(ValueError, match=r"kept is damaged|classifier.json: .* must be"):
            FewShotClassifier.from_pretrained(place)
    (place / "classifier.json").write_text(json.dumps(whole))
    content = (place / "examples.safetensors").read_bytes()
    (place / "examples.safetensors").write_bytes(content[:-9])
    with pytest.raises(ValueError, match=r"examples.safetensors is damaged or cut short"):
        FewShotClassifier.from_pretrained(place)
