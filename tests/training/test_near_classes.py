"""Runs whose batches are of near classes: by mean images or by weights, exactly resumed whatever becomes of the weights."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small import small

from rankshot.data import ImageSet
from rankshot.data.class_choice import NearFirst
from rankshot.tensors import read_tensors
from rankshot.training import Callback, train
from rankshot.training.assembly import Objects
from rankshot.training.near_classes import NEIGHBOURS, some_of_each
from rankshot.training.setup import set_up


def shades(classes=8, images=6):
    """Class k has the brightness k, so that its neighbours are k - 1 and k + 1."""
    labels = np.arange(classes * images) // images
    pixels = np.broadcast_to((20 * labels).astype(np.uint8)[:, None, None, None], (len(labels), 1, 28, 28)).copy()
    return ImageSet(pixels, labels, tuple(f"shade {each}" for each in range(classes)))


def setup_of(folder, images=None, **settings):
    config = small(**settings)
    objects = Objects(train_set=images) if images is not None else Objects()
    return set_up(objects.named_in(config), folder, objects, resume=True)


def weights_of(folder):
    return read_tensors(folder / "model.safetensors")


def test_by_mean_images(tmp_path):
    setup = setup_of(
        tmp_path / "run", shades(), batch_similar=1.0, batch_classes=2, batch_size=8, validate_every=0, method="nca"
    )
    assert isinstance(setup.sampler.choose, NearFirst)
    assert setup.sampler.choose.near == 1
    expected = [[1, 2], [0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 5]]
    assert setup.sampler.choose.neighbours.tolist() == expected
    for number in range(20):
        one, other = setup.labels[setup.batch(number).indices].unique().tolist()
        assert other - one <= 2


def test_by_weights(tmp_path):
    train(small(updates=2), tmp_path / "weights", progress=Callback())
    by_images, by_weights = (
        setup_of(tmp_path / "run", batch_similar=1.0, batch_similar_by=by) for by in (None, str(tmp_path / "weights"))
    )
    neighbours = [setup.tensors[NEIGHBOURS] for setup in (by_images, by_weights)]
    assert neighbours[0].shape == neighbours[1].shape
    assert not torch.equal(*neighbours)
    assert by_weights.config.batch.similar_by == str((tmp_path / "weights").resolve())


def test_by_chance_nothing_is_kept(tmp_path):
    assert NEIGHBOURS not in setup_of(tmp_path / "run").tensors


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_resumed_exactly_also_without_the_weights(tmp_path, share, monkeypatch):
    """What is near is in the checkpoint."""
    monkeypatch.chdir(tmp_path)
    train(small(updates=2, seed=5), "weights", progress=Callback())
    config = small(updates=12, batch_similar=share, batch_similar_by="weights", validate_every=0)
    train(config, "whole", progress=Callback())
    train(config.changed(updates=6), "parts", progress=Callback())
    path = Path("weights").resolve()
    shutil.move(path, tmp_path / "elsewhere")
    train(config.changed(batch_similar_by=str(path)), "parts", resume=True, progress=Callback())
    whole, parts = weights_of(Path("whole")), weights_of(Path("parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    train(small(updates=12, validate_every=0), "chance", progress=Callback())
    assert not all(torch.equal(whole[name], each) for name, each in weights_of(Path("chance")).items())


def test_what_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="batch_similar must be a number from 0 to 1"):
        small(batch_similar=1.5)
    with pytest.raises(ValueError, match="batch_similar_by tells by what batch_similar finds near classes, and that is 0"):
        small(batch_similar_by="conv4-mini-imagenet")
    with pytest.raises(ValueError, match=r"batch_similar is for methods .*, and prototypical draws its own"):
        setup_of(tmp_path / "run", batch_similar=1.0, method="prototypical")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        setup_of(tmp_path / "run", batch_similar=1.0, batch_similar_by="nowhere")
    with pytest.raises(ValueError, match=r"batch_similar_by is conv4-mini-imagenet: the network takes images of 3x84x84"):
        setup_of(tmp_path / "run", batch_similar=1.0, batch_similar_by="conv4-mini-imagenet")


def test_some_images_of_every_class():
    labels = np.array([3] * 500 + [1] * 2)
    chosen = some_of_each(labels)
    assert np.bincount(labels[chosen]).tolist() == [0, 2, 0, 100]
    assert len(set(chosen.tolist())) == len(chosen)
