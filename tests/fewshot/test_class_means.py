"""The means of the classes that a network was trained on: which images, what is written, what is read."""

import numpy as np
import pytest
import torch
from small import small

from rankshot import Embedder, FewShotClassifier
from rankshot.data import ImageSet, load
from rankshot.fewshot import class_means
from rankshot.fewshot.class_means import (
    IMAGES_A_CLASS,
    MOST_CLASSES,
    help_reject,
    measured,
    other_classes,
    read,
    some_of_each,
    write,
)
from rankshot.models import from_pretrained
from rankshot.training import train


def test_some_images_of_some_classes():
    labels = np.repeat(np.arange(300), 25)
    places = some_of_each(labels)
    kept, counts = np.unique(labels[places], return_counts=True)
    assert (len(kept), kept[0], kept[-1]) == (MOST_CLASSES, 0, 299)
    assert set(counts) == {IMAGES_A_CLASS}
    assert len(set(places.tolist())) == len(places)
    assert some_of_each(np.array([7, 7, 2])).tolist() == [2, 0, 1]


def test_each_is_the_mean_of_its_unit_vectors():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 1, 2, 2), dtype=np.uint8)
    images = ImageSet(pixels, np.array([4, 1, 4, 1, 1, 4, 4]), tuple("abcdef"))
    means = measured(torch.nn.Flatten(), images)
    rows = pixels.reshape(7, 4).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for mean, label in zip(means, (1, 4), strict=True):
        expected = rows[images.labels == label].mean(0)
        np.testing.assert_allclose(mean.numpy(), expected / np.linalg.norm(expected), atol=1e-6)


@pytest.fixture
def always(monkeypatch):
    """They are kept, whether they help or not."""
    monkeypatch.setattr(class_means, "help_reject", lambda *_: True)


def test_a_run_leaves_them_beside_its_weights(tmp_path, data_root, always):
    config = small(updates=4, root=data_root, checkpoint_every=2)
    train(config, tmp_path / "run")
    images = load("glyphs", "train", data_root)
    expected = measured(from_pretrained(tmp_path / "run"), images)
    torch.testing.assert_close(read(tmp_path / "run"), expected.double(), atol=1e-3, rtol=0)
    train(config.changed(updates=6), tmp_path / "run", resume=True)
    again = measured(from_pretrained(tmp_path / "run"), images)
    torch.testing.assert_close(read(tmp_path / "run"), again.double(), atol=1e-3, rtol=0)


def test_none_are_left_where_they_do_not_help(tmp_path, data_root, monkeypatch):
    config = small(updates=2, root=data_root)
    with monkeypatch.context() as patch:
        patch.setattr(class_means, "help_reject", lambda *_: True)
        train(config, tmp_path / "run")
        train(config.changed(validate_every=0), tmp_path / "unvalidated")
    assert read(tmp_path / "run") is not None
    assert read(tmp_path / "unvalidated") is None
    monkeypatch.setattr(class_means, "help_reject", lambda *_: False)
    train(config.changed(updates=3), tmp_path / "run", resume=True)
    assert read(tmp_path / "run") is None


def test_whether_they_help():
    """Images, and the classes that a network was trained on, have more or less of one thing in common.

    What has much of it is near everything.
    """
    random, unit = torch.Generator().manual_seed(0), torch.nn.functional.normalize
    labels = torch.arange(12).repeat_interleave(15)
    common = unit(torch.ones(1, 30), dim=-1)
    amount = 2 * torch.rand(len(labels), 1, generator=random)
    own = unit(torch.randn(12, 30, generator=random), dim=-1)[labels]
    images = unit(own + amount * common + 0.15 * torch.randn(len(labels), 30, generator=random), dim=-1)
    trained = unit(unit(torch.randn(30, 30, generator=random), dim=-1) + common, dim=-1)
    assert help_reject(trained, images, labels)
    assert not help_reject(-trained, images, labels)
    assert not help_reject(0 * trained, images, labels)  # they say nothing
    assert not help_reject(trained, images[:30], labels[:30])  # two classes: none can be left out
    assert not help_reject(trained, images[::15], labels[::15])  # a single image of each


def test_a_classifier_counts_them_against_an_image(tmp_path, data_root, always):
    train(small(updates=2, root=data_root), tmp_path / "run")
    letters, others = load("glyphs", "val", data_root), load("glyphs", "train", data_root)
    places = np.flatnonzero(letters.labels < 3)
    plain = FewShotClassifier(Embedder(tmp_path / "run"), reject=0.05)
    plain.embedder.class_means = None
    plain.fit(letters.images[places], letters.labels[places])
    careful = FewShotClassifier(Embedder(tmp_path / "run"), reject=0.05).fit(letters.images[places], letters.labels[places])
    strangers = others.images[:40]
    assert (careful.nearness(strangers) < plain.nearness(strangers)).all()
    again = FewShotClassifier.from_pretrained(careful.save_pretrained(tmp_path / "saved"))
    np.testing.assert_allclose(again.nearness(strangers), careful.nearness(strangers), atol=1e-6)
    assert again.rejection_.threshold == pytest.approx(careful.rejection_.threshold, abs=1e-6)
    # With one example of each class and a threshold of one's own, nothing can tell which of them are taught.
    single = [np.flatnonzero(letters.labels == label)[0] for label in range(3)]
    one = FewShotClassifier(Embedder(tmp_path / "run"), threshold=0.5).fit(letters.images[single], letters.labels[single])
    assert one._now().others is None


@pytest.mark.parametrize("means", [torch.zeros(3), torch.zeros(0, 4), torch.full((2, 3), torch.nan)])
def test_a_damaged_file(means, tmp_path):
    write(tmp_path, means)
    with pytest.raises(ValueError, match=r"class_means.safetensors is damaged: it should hold the means of classes"):
        read(tmp_path)
    assert read(tmp_path / "elsewhere") is None


def test_others_of_many_episodes_are_those_of_each():
    random = torch.Generator().manual_seed(0)
    trained = torch.nn.functional.normalize(torch.randn(9, 5, generator=random, dtype=torch.float64), dim=-1)
    support = trained[:3].repeat_interleave(4, 0) + 0.3 * torch.randn(6, 12, 5, generator=random, dtype=torch.float64)
    support = torch.nn.functional.normalize(support, dim=-1)
    labels = torch.arange(3).repeat_interleave(4)
    counts = torch.full((3,), 4.0, dtype=torch.float64)
    found = class_means._are_others(trained, support.view(6, 3, 4, 5).sum(2), counts)
    for episode, mask in zip(support, found, strict=True):
        assert torch.equal(other_classes(trained, episode, labels, 3), trained[mask])
    assert not found[:, :3].any()
    assert found[:, 3:].any()
