"""Thresholds at one shot: what they promise of known images and of strangers holds for others like them."""

import json

import numpy as np
import pytest
import torch

from rankshot.fewshot import class_means
from rankshot.gallery import Embedder, FewShotClassifier
from rankshot.gallery.one_shot import ONE_SHOT, RATES, OneShot, known_beside, measured, read
from rankshot.models.shipped import FOLDER, shipped


def clouds(seed, classes=30, each=20):
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(classes, 1, 8, generator=random)
    vectors = (centres + 0.4 * torch.randn(classes, each, 8, generator=random)).flatten(0, 1)
    return torch.nn.functional.normalize(vectors, dim=-1), torch.arange(classes).repeat_interleave(each)


def test_by_hand():
    """One episode at a time, on other classes of the same kind."""
    found = measured(*clouds(0))
    vectors, _ = clouds(1)
    vectors = vectors.view(30, 20, 8)
    threshold = found.threshold(0.1)
    rejected, caught = [], []
    random = np.random.default_rng(0)
    for _ in range(300):
        classes = random.permutation(30)[:20]
        examples = vectors[classes[:-1], 0]
        rejected.append(((vectors[classes[:-1], 1:] @ examples.T).amax(-1) < threshold).float().mean())
        caught.append(((vectors[classes[-1], 1:] @ examples.T).amax(-1) < threshold).float().mean())
    assert np.mean(rejected) == pytest.approx(0.1, abs=0.05)
    assert np.mean(caught) == pytest.approx(found.caught[RATES.index(0.1)], abs=0.1)


def test_between_rates():
    found = OneShot((0.0, 0.1), (0.5, 0.7), (0.0, 0.0))
    assert found.threshold(0.05) == pytest.approx(0.6)
    assert found.threshold(0.9) == pytest.approx(0.7)


@pytest.mark.parametrize("name", shipped())
def test_shipped_weights_have_theirs(name):
    found = read(FOLDER / name)
    assert list(found.thresholds) == sorted(found.thresholds)
    bar = np.zeros((28, 28), np.uint8)
    bar[10:14] = 255
    characters = [bar, bar.T]
    classifier = FewShotClassifier(Embedder(name), reject=0.05, unknown="?").fit(characters, ["down", "up"])
    assert classifier.rejection_.threshold == found.threshold(0.05)
    assert classifier.predict(characters).tolist() == ["down", "up"]


def test_damaged(tmp_path):
    assert read(tmp_path) is None
    (tmp_path / ONE_SHOT).write_text(json.dumps({"rates": []}))
    with pytest.raises(ValueError, match="thresholds must be there, got nothing"):
        read(tmp_path)


def test_thresholds_go_with_the_class_means_that_they_were_measured_with(tmp_path):
    means = torch.nn.functional.normalize(torch.rand(3, 4), dim=-1)
    vectors = torch.nn.functional.normalize(torch.rand(60, 4), dim=-1)
    labels = torch.arange(3).repeat_interleave(20)
    plain, less = measured(vectors, labels), measured(vectors, labels, means)
    assert (plain.temperature, less.temperature) == (None, class_means.TEMPERATURE)
    assert max(less.thresholds) < min(plain.thresholds)
    for thresholds in (plain, less):
        with_means = thresholds.temperature is not None
        (tmp_path / ONE_SHOT).write_text(json.dumps(thresholds._asdict()))
        class_means.write(tmp_path, None)
        assert (known_beside(tmp_path)[0] is None) == with_means
        class_means.write(tmp_path, means)
        found, beside = known_beside(tmp_path)
        assert (found is None) != with_means
        torch.testing.assert_close(beside, means.double(), atol=1e-3, rtol=0)
    # Of an earlier version, in which the class means counted in another way.
    earlier = {name: value for name, value in less._asdict().items() if name != "temperature"} | {"with_class_means": True}
    (tmp_path / ONE_SHOT).write_text(json.dumps(earlier))
    assert known_beside(tmp_path)[0] is None
