"""scikit-learn's contract, and the few-shot evaluator's answers."""

import pickle
import sys
import threading

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankshot.fewshot import class_scores
from rankshot.fewshot.rules import RULES
from rankshot.gallery import Embedder, FewShotClassifier
from rankshot.models import Conv4
from rankshot.preprocess import Preprocess


@parametrize_with_checks([FewShotClassifier(rule=rule) for rule in (*RULES, "auto")])
def test_what_scikit_learn_asks_for(estimator, check):
    check(estimator)


def blobs(classes="abcde", each=6, dimensions=8, spread=0.3, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(len(classes), dimensions))
    X = np.concatenate([centre + spread * random.normal(size=(each, dimensions)) for centre in centres])
    return X, np.repeat(list(classes), each)


def test_in_a_pipeline():
    X, y = blobs(each=12)
    assert cross_val_score(make_pipeline(StandardScaler(), FewShotClassifier()), X, y, cv=4).mean() > 0.95
    with_strangers = FewShotClassifier(reject=0.05, unknown="?").fit(X, y)
    assert clone(with_strangers).get_params() == with_strangers.get_params()
    again = pickle.loads(pickle.dumps(with_strangers))
    assert np.array_equal(again.predict(X), with_strangers.predict(X))


@pytest.mark.parametrize("shot", [1, 5])
def test_the_paper_s_rule(shot):
    X, _ = blobs(each=shot + 10, spread=1.0)
    X = X.reshape(5, shot + 10, -1)
    support, queries = X[:, :shot], X[:, shot:].reshape(50, -1)
    classifier = FewShotClassifier(rule="ap").fit(support.reshape(5 * shot, -1), np.repeat(list("abcde"), shot))
    unit = [torch.nn.functional.normalize(torch.tensor(each), dim=-1) for each in (queries, support.reshape(5 * shot, -1))]
    expected = class_scores((unit[0] @ unit[1].T).view(50, 5, shot)).argmax(-1)
    assert (classifier.predict(queries) == np.array(list("abcde"))[expected.numpy()]).all()


def test_other_rules_by_hand():
    X, y = blobs(spread=1.0)
    query = np.random.default_rng(1).normal(size=(20, 8))
    unit, q = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (X, query))
    assert (FewShotClassifier(rule="nearest").fit(X, y).predict(query) == y[(q @ unit.T).argmax(1)]).all()
    means = np.stack([unit[y == each].mean(0) for each in "abcde"])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    found = FewShotClassifier(rule="prototype").fit(X, y)
    assert (found.predict(query) == np.array(list("abcde"))[(q @ means.T).argmax(1)]).all()
    np.testing.assert_allclose(found.nearness(query), (q @ means.T).max(1))
    theirs = LogisticRegression(C=10, fit_intercept=False, tol=1e-10, class_weight="balanced").fit(unit, y)
    found = FewShotClassifier(rule="logistic").fit(X, y)
    assert (found.predict(query) == theirs.predict(q)).all()
    assert found.score(X, y) == theirs.score(unit, y)


def test_by_default_the_best_rule_that_is_known():
    X, y = blobs(spread=1.0)
    query = np.random.default_rng(1).normal(size=(200, 8))
    answers = {rule: FewShotClassifier(rule=rule).fit(X, y).predict(query) for rule in RULES}
    assert (FewShotClassifier().fit(X, y).predict(query) == answers["logistic"]).all()
    assert (FewShotClassifier().fit(X[:3], y[:3]).predict(query) == "a").all()  # a single class, which has nothing to learn
    assert len({tuple(answer) for answer in answers.values()}) == len(RULES)  # they are different rules


def test_logistic_regression_of_one_class_is_refused_and_forgets_nothing():
    with pytest.raises(ValueError, match="there must be two at least"):
        FewShotClassifier(rule="logistic").fit([[1.0, 0.0]], ["a"])
    classifier = FewShotClassifier(rule="logistic").fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="there must be two at least"):
        classifier.remove_class("a")
    assert classifier.predict([[1.0, 0.1]]) == ["a"]


def test_one_more_example_and_one_more_class_touch_nothing_else():
    X, y = blobs()
    shuffled = np.random.default_rng(0).permutation(len(y))
    X, y = X[shuffled], y[shuffled]
    whole = FewShotClassifier(reject=0.1).fit(X, y)
    first = y != "c"
    parts = FewShotClassifier(reject=0.1).fit(X[first], y[first])
    before = parts.support_.copy()
    parts.partial_fit(X[~first][:1], y[~first][:1]).partial_fit(X[~first][1:], y[~first][1:])
    assert np.array_equal(parts.support_[: len(before)], before)
    queries = np.random.default_rng(2).normal(size=(40, 8))
    np.testing.assert_allclose(parts.predict_proba(queries), whole.predict_proba(queries))
    assert parts.predict(queries).tolist() == whole.predict(queries).tolist()
    parts.remove_class("c")
    alone = FewShotClassifier(reject=0.1).fit(X[first], y[first])
    np.testing.assert_allclose(parts.predict_proba(queries), alone.predict_proba(queries))
    assert parts.classes_.tolist() == list("abde")
    with pytest.raises(ValueError, match="there is no class 'c': there is 'a', 'b', 'd', 'e'"):
        parts.remove_class("c")
    with pytest.raises(ValueError, match="'a' is the only class"):
        FewShotClassifier().fit(X[y == "a"], y[y == "a"]).remove_class("a")


def test_none_of_these():
    X, y = blobs(each=12)
    stranger = np.random.default_rng(9).normal(size=(30, 8)) * 3
    quiet = FewShotClassifier().fit(X, y)
    assert quiet.rejection_ is None
    for unknown, kind in ((None, object), ("none of these", np.str_), (0, object)):
        classifier = FewShotClassifier(reject=0.05, unknown=unknown).fit(X, y)
        answers = classifier.predict(np.concatenate([X, stranger]))
        assert isinstance(answers.dtype.type(), kind) or answers.dtype == kind
        rejected = np.array([each == unknown for each in answers.tolist()])
        assert rejected[: len(X)].mean() < 0.15
        assert rejected[len(X) :].mean() > 0.5
    report = classifier.rejection_
    assert abs(report.false_rejections - 0.05) < 0.03
    assert 0 <= report.false_acceptances < 0.5
    fixed = FewShotClassifier(threshold=0.99).fit(X, y)
    assert fixed.rejection_.threshold == 0.99
    assert fixed.rejection_.false_rejections > 0.5
    with pytest.raises(ValueError, match="what is none of these cannot be told from the examples"):
        FewShotClassifier(reject=0.05).fit(X[::12], y[::12])


def test_a_number_for_none_of_these_stays_that_number():
    labels = np.array([1, 1, 2, 2], dtype=np.int8)
    classifier = FewShotClassifier(threshold=0.9, unknown=300).fit(np.eye(2).repeat(2, 0), labels)
    assert classifier.predict([[1.0, 0.0], [-1.0, -1.0]]).tolist() == [1, 300]


def test_texts_as_pandas_has_them():
    labels = np.array(["a", "b"], dtype=object)
    classifier = FewShotClassifier(threshold=0.9, unknown="neither").fit(np.eye(2), labels)
    assert classifier.classes_.dtype.kind == "U"
    assert classifier.predict([[1.0, 0.0], [-1.0, -1.0]]).tolist() == ["a", "neither"]
    with pytest.raises(ValueError, match="labels must be all texts or all numbers, got both"):
        FewShotClassifier().fit(np.eye(2), np.array(["a", 3], dtype=object))


def test_what_fails_leaves_everything_as_it_was():
    X, y = blobs("ab", each=2)
    classifier = FewShotClassifier(reject=0.1).fit(X[:3], y[:3])  # two of a, one of b
    with pytest.raises(ValueError, match="cannot be told from the examples"):
        classifier.remove_class("a")
    assert classifier.classes_.tolist() == ["a", "b"]
    for labels in ([7], [True]):
        with pytest.raises(ValueError, match="they must be all texts or all numbers"):
            classifier.partial_fit(X[3:], labels)
    with pytest.raises(ValueError, match="labels must be all texts or all numbers, got both"):
        FewShotClassifier().fit(X, [1, 1, "a", "a"])
    assert len(classifier.support_) == 3
    assert classifier.predict(X[:1]).tolist() == ["a"]


def test_the_score_counts_none_of_these():
    classifier = FewShotClassifier(threshold=0.99).fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    assert classifier.score([[-1.0, -1.0], [1.0, 0.0]], ["a", "a"]) == 0.5
    assert classifier.score([[-1.0, -1.0], [1.0, 0.0]], [None, "a"], sample_weight=[3, 1]) == 1.0


def test_who_decided(tmp_path):
    X, y = blobs()
    classifier = FewShotClassifier().fit(X, y)
    (found,) = classifier.neighbours(X[3:4] + 0.001, k=4)
    assert (found[0].place, found[0].label, found[0].name) == (3, "a", "example 3")
    similarities = [each.similarity for each in found]
    assert similarities == sorted(similarities, reverse=True)
    assert len(classifier.neighbours(X[:2], k=1000)[1]) == len(X)
    with pytest.raises(ValueError, match="k must be a whole number of 1 or more, got 0"):
        classifier.neighbours(X, k=0)


def test_images(tmp_path):
    random = np.random.default_rng(0)
    colours = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (40, 60, 220)}
    paths, y = [], []
    for name, colour in colours.items():
        for number in range(3 if name == "red" else 2):  # uneven shots are normal
            pixels = np.clip(np.array(colour) + random.integers(-30, 30, (20, 24, 3)), 0, 255).astype(np.uint8)
            paths.append(tmp_path / f"{name}{number}.png")
            Image.fromarray(pixels).save(paths[-1])
            y.append(name)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
    classifier = FewShotClassifier(Embedder(network, Preprocess(3, 16, 16))).fit(paths, y)
    assert classifier.score(paths, y) == 1.0
    assert classifier.predict([np.full((9, 9, 3), (0, 0, 255), np.uint8)]).tolist() == ["blue"]
    assert classifier.neighbours(paths[:1], 1)[0][0].name == str(paths[0])
    ready = classifier._embedder()(paths).astype(np.float64)
    assert classifier.predict(ready).tolist() == y  # embeddings in place of images
    assert classifier.predict([]).tolist() == []
    for single in (paths[0], np.asarray(Image.open(paths[0])), np.zeros((9, 12), np.uint8)):
        with pytest.raises(ValueError, match="give a list of images, also of a single one"):
            classifier.predict(single)
    again = FewShotClassifier(classifier.embedder).fit((path for path in paths), y)
    assert again.neighbours(paths[:1], 1)[0][0].name == str(paths[0])
    with pytest.raises(ValueError, match="the examples have 12 dimensions, got 5"):
        classifier.predict(np.zeros((2, 5)))


def test_a_run_or_shipped_weights(tmp_path):
    characters = [np.eye(28, dtype=np.uint8)[None] * 255, np.eye(28, dtype=np.uint8)[None, ::-1] * 255]
    classifier = FewShotClassifier("conv4-omniglot").fit(characters, ["down", "up"])
    assert classifier.predict(characters).tolist() == ["down", "up"]
    assert clone(classifier).get_params()["embedder"] == "conv4-omniglot"
    with pytest.raises(FileNotFoundError, match="holds no network"):
        FewShotClassifier(tmp_path).fit(characters, ["down", "up"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "far"}, "unknown rule 'far': there is 'ap', 'nearest', 'prototype', 'logistic'"),
        ({"reject": 1.0}, "reject must be from 0 to less than 1, got 1.0"),
        ({"reject": "a"}, "reject must be a number or None, got 'a'"),
        ({"threshold": 3}, "threshold is of the nearness, from -2 to 2, got 3"),
        ({"threshold": True}, "threshold must be a number or None, got True"),
        ({"reject": np.bool_(False)}, "reject must be a number or None, got"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        FewShotClassifier(**settings).fit(*blobs())


def test_bad_labels():
    X, y = blobs()
    with pytest.raises(ValueError, match="a label for each of 30 examples, got 29"):
        FewShotClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match="does not tell what pictures it wants"):
        FewShotClassifier(Conv4()).fit([X], ["a"])


@pytest.mark.slow
def test_threads_that_ask_while_others_teach():
    """Of finding 3: answers from what was taught at one moment; nothing that two threads teach is lost."""
    random, turns = np.random.default_rng(0), 6
    centres = np.eye(6)
    classifier = FewShotClassifier(reject=0.05, unknown="none").fit(
        np.repeat(centres[:2], 3, 0) + 0.05 * random.normal(size=(6, 6)), ["c0"] * 3 + ["c1"] * 3
    )
    problems, done = [], threading.Event()

    def ask():
        while not done.is_set():
            try:
                asked = centres[:2]
                labels, shares = classifier.predict(asked), classifier.predict_proba(asked)
                near = classifier.neighbours(asked, 3)
                if not {"c0", "c1"} >= set(labels.tolist()) or not np.allclose(shares.sum(1), 1) or len(near[0]) != 3:
                    problems.append((labels, shares.shape))
                classifier.nearness(asked)
            except Exception as error:
                problems.append(error)

    def teach(number):
        for turn in range(turns):
            classifier.partial_fit(centres[number] + 0.05 * np.ones((2, 6)) * turn / 15, [f"c{number}"] * 2)
            if turn % 3 == 2 and number == 2:
                classifier.remove_class("c2")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    asking = [threading.Thread(target=ask) for _ in range(3)]
    teaching = [threading.Thread(target=teach, args=[number]) for number in (2, 3)]
    try:
        for each in asking + teaching:
            each.start()
        for each in teaching:
            each.join()
        done.set()
        for each in asking:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
    assert np.bincount(classifier.support_labels_).tolist() == [3, 3, 2 * turns]
    assert classifier.classes_.tolist() == ["c0", "c1", "c3"]


def test_neighbours_of_the_class_that_was_answered():
    classifier = FewShotClassifier().fit([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], ["a", "a", "b", "b"])
    asked = [[1, 0.1], [1, 0.1], [0, 1]]
    found = classifier.neighbours(asked, 3, of=["a", "b", None])
    assert [[each.place for each in row] for row in found] == [[1, 0], [3, 2], [2, 3, 1]]
    assert [row[0].label for row in found] == ["a", "b", "b"]
    with pytest.raises(ValueError, match="of must be a class for each of 3 images, got 1"):
        classifier.neighbours(asked, of=["a"])
