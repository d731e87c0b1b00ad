"""The drawing of the method: a picture, always the same, whose numbers are right."""

import re
from fractions import Fraction

import numpy as np
import pytest
from oracles import all_interleavings, best_objective, metric_of
from PIL import Image

from rankshot.data import load
from rankshot.data.glyphs import DRAWERS as OF_EACH
from rankshot.reproduce.drawing import HEIGHT, SHARPNESS, WIDTH, Sheet, draw_method
from rankshot.reproduce.worked_example import CHARACTERS, DRAWERS, EPSILON, QUERY, WorkedExample


@pytest.fixture(scope="module")
def example():
    return WorkedExample()


def precision_of(query, cosines, labels):
    """Average precision by its definition."""
    others = sorted((item for item in range(len(labels)) if item != query), key=lambda item: -cosines[query][item])
    return metric_of([labels[item] == labels[query] for item in others], "ap")


def score_of(ranking, cosines):
    """F by its definition: over all pairs of a relevant and an irrelevant item."""
    pairs = [
        (1 if above else -1) * (cosines[good] - cosines[bad])
        for place, good in enumerate(ranking.items)
        for other, bad in enumerate(ranking.items)
        if ranking.relevant[place] and not ranking.relevant[other]
        for above in [place < other]
    ]
    return sum(pairs) / len(pairs)


def test_a_picture_and_always_the_same(tmp_path):
    paths = [draw_method(tmp_path / name / "method.png") for name in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with Image.open(paths[0]) as picture:
        assert (picture.format, picture.size) == ("PNG", (WIDTH * SHARPNESS, HEIGHT * SHARPNESS))


def test_what_is_printed(example, tmp_path, monkeypatch):
    printed = []
    monkeypatch.setattr(Sheet, "words", lambda sheet, x, y, text, *_, **__: printed.append(text))
    draw_method(tmp_path / "method.png")
    cosines, labels = example.cosines.tolist(), example.labels.tolist()
    precisions = [precision_of(query, cosines, labels) for query in range(len(labels))]
    three = [rankings[QUERY] for rankings in (example.predicted, example.augmented, example.truth)]
    scores = [score_of(ranking, cosines[QUERY]) for ranking in three]
    of_three = [metric_of(ranking.relevant, "ap") for ranking in three]
    sums = [score + 1 - precision for score, precision in zip(scores, of_three, strict=True)]
    numbers = [*precisions, sum(precisions) / len(precisions), *scores, *sums, *of_three]
    assert [text for text in printed if re.fullmatch(r"\d\.\d\d", text)] == [f"{number:.2f}" for number in numbers]
    (worked,) = [re.search(r"\((.*)\) / 3 = (.*)", text) for text in printed if "Shaded" in text]
    assert sum(map(Fraction, worked[1].split(" + "))) / 3 == pytest.approx(precisions[QUERY])
    assert worked[2] == f"{precisions[QUERY]:.2f}"


def test_its_images_are_those_of_the_data_set(example, drawn):
    images = load("glyphs", "train", drawn.parents[1])
    places = {name.split("U+")[1]: label for label, name in enumerate(images.classes)}
    chosen = [places[f"{ord(each):04X}"] * OF_EACH + drawer for each in CHARACTERS for drawer in DRAWERS]
    assert np.array_equal(example.images, images.images[chosen, 0])


def test_every_image_ranks_all_others(example):
    cosines, labels = example.cosines.tolist(), example.labels.tolist()
    expected = [precision_of(query, cosines, labels) for query in range(len(labels))]
    assert [ranking.precision for ranking in example.predicted] == pytest.approx(expected)
    assert example.mean_precision == pytest.approx(sum(expected) / len(expected))
    for query, ranking in enumerate(example.predicted):
        assert sorted([query, *ranking.items]) == list(range(len(labels)))
        assert [cosines[query][item] for item in ranking.items] == sorted(np.delete(cosines[query], query), reverse=True)
        assert ranking.relevant == tuple(labels[item] == labels[query] for item in ranking.items)


def test_three_rankings_of_each(example):
    for query, rankings in enumerate(zip(example.predicted, example.augmented, example.truth, strict=True)):
        cosines = example.cosines[query].tolist()
        for ranking in rankings:
            assert ranking.score == pytest.approx(score_of(ranking, cosines))
            assert ranking.precision == pytest.approx(metric_of(ranking.relevant, "ap"))
        predicted, augmented, truth = rankings
        sides = ([cosines[item] for item in truth.items[:3]], [cosines[item] for item in truth.items[3:]])
        assert truth.relevant == (True,) * 3 + (False,) * 8
        assert predicted.score == pytest.approx(best_objective(*sides, "ap", 0.0, +1, all_interleavings))
        best = best_objective(*sides, "ap", EPSILON, +1, all_interleavings)
        assert augmented.score + EPSILON * augmented.loss == pytest.approx(best)


def test_the_one_that_is_drawn_shows_three_different_ones(example):
    predicted, augmented, truth = example.predicted[QUERY], example.augmented[QUERY], example.truth[QUERY]
    assert predicted.score > augmented.score > truth.score
    assert truth.precision > predicted.precision > augmented.precision
