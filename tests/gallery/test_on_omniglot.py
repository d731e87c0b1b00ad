"""Real characters, the shipped weights: the evaluator's accuracy, and strangers that are recognised as such."""

import zipfile

import numpy as np
import pytest
import torch

from rankshot import fewshot
from rankshot.data import ImageSet
from rankshot.fewshot.episodes import draw_episodes
from rankshot.gallery import Embedder, FewShotClassifier
from rankshot.gallery.pictures import pixels_of
from rankshot.models import from_pretrained
from rankshot.preprocess import Preprocess

EPISODES = 40
pytestmark = pytest.mark.slow  # at length what test_classifier.py and test_rejection.py have of small sets


@pytest.fixture(scope="module")
def characters(shared):
    """Some of the test characters, turned into four classes each, as in training."""
    lines = (shared / "omniglot" / "split" / "test.txt", shared / "omniglot" / "split" / "test")
    path = next(each for each in lines if each.exists())
    names = sorted({line.rsplit("/", 1)[0] for line in path.read_text().split()})[::12]
    with zipfile.ZipFile(shared / "omniglot" / "images_evaluation.zip") as file:
        files = [[each for each in file.namelist() if f"/{name}/" in each and each.endswith(".png")] for name in names]
        files = [each for each in files if len(each) == 20]
        images = [pixels_of(file.read(each), Preprocess(1, 28, 28, invert=True)) for group in files for each in group]
    assert len(files) >= 20
    return ImageSet(
        np.stack(images), np.repeat(np.arange(len(files)), 20), tuple(map(str, range(len(files))))
    ).with_rotations()


@pytest.fixture(scope="module")
def vectors(characters):
    return Embedder("conv4-omniglot")(characters.images)


@pytest.mark.parametrize("shot", [1, 5])
def test_the_evaluator_s_accuracy(characters, vectors, shot):
    task = fewshot.Classification(20, shot)
    model = from_pretrained("conv4-omniglot")
    (expected,) = fewshot.evaluate(model, characters, [task], EPISODES)
    found = []
    for episode in draw_episodes(torch.from_numpy(characters.labels), task, EPISODES, 0).numpy():
        support, queries = episode[:, :shot], episode[:, shot:]
        classifier = FewShotClassifier().fit(vectors[support.ravel()], np.repeat(np.arange(20), shot))
        found.append(classifier.score(vectors[queries.ravel()], np.repeat(np.arange(20), queries.shape[1])))
    assert np.mean(found) == pytest.approx(expected.mean, abs=expected.interval / 4)


def test_strangers_at_five_shots(characters, vectors):
    """A class is left out of the support: most of its images are none of these, and few of the others."""
    caught, turned_away, promised = [], [], []
    for episode in draw_episodes(torch.from_numpy(characters.labels), fewshot.Classification(20, 5), EPISODES, 1).numpy():
        known = episode[:-1]
        classifier = FewShotClassifier(reject=0.05, unknown=-1).fit(
            vectors[known[:, :5].ravel()], np.repeat(np.arange(19), 5)
        )
        caught.append((classifier.predict(vectors[episode[-1, 5:]]) == -1).mean())
        turned_away.append((classifier.predict(vectors[known[:, 5:].ravel()]) == -1).mean())
        promised.append(classifier.rejection_.false_acceptances)
    assert np.mean(caught) > 0.8
    assert np.mean(turned_away) < 0.07
    assert np.mean(promised) == pytest.approx(1 - np.mean(caught), abs=0.1)
