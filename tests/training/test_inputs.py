"""A frozen network sees its images once: its head learns the same, in less time."""

import pytest
import torch
from small import small

from rankshot.data import load
from rankshot.data.augmentation import RANDOM_NUMBERS
from rankshot.models import from_pretrained
from rankshot.tensors import read_tensors
from rankshot.training import Callback, setup, train
from rankshot.training.batch import Batch
from rankshot.training.inputs import VIEWS, Pictures, embedded_once


def frozen(root, **more):
    return small(**{"head": "linear", "frozen": ("all",), "learning_rate": 0.01, "validate_every": 0, "root": root, **more})


class Notes(Callback):
    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


@pytest.fixture
def messages():
    return Notes()


@pytest.mark.parametrize("more", [{}, {"average": 0.5}, {"micro_batch": 5}, {"head": "scale"}])
def test_the_head_learns_what_it_learns_behind_its_network(more, tmp_path, data_root, monkeypatch):
    config = frozen(data_root, updates=6, **more)
    train(config, tmp_path / "once")
    with monkeypatch.context() as patch:
        patch.setattr(setup, "can_be_embedded_once", lambda *_: False)
        train(config, tmp_path / "each")
    once, each = (read_tensors(tmp_path / name / "model.safetensors") for name in ("once", "each"))
    assert once.keys() == each.keys()
    for name in once:
        torch.testing.assert_close(once[name], each[name], atol=2e-5, rtol=1e-4)
    head = next(name for name in once if name.endswith(("head.weight", "head.offset")))
    first = {"linear": torch.eye, "scale": torch.zeros}.get(config.network.head)
    assert first is None or not torch.allclose(once[head], first(len(once[head])), atol=1e-3)


def test_every_view_has_its_turn(data_root):
    images = load("glyphs", "train", data_root)
    network = torch.nn.Flatten()
    labels, told = torch.from_numpy(images.labels), []
    inputs = embedded_once(network, images.pixels(), labels, ("crop",), 0, torch.float32, told.append)
    plain = images.pixels().float().flatten(1) / 255
    assert inputs.views.shape == (len(images), VIEWS, plain.shape[1])
    torch.testing.assert_close(inputs.views[:, 0], plain)
    moved = [(inputs.views[:, view] != plain).any(1).float().mean().item() for view in range(1, VIEWS)]
    assert min(moved) > 0.8
    [sentence] = told
    assert sentence.startswith(f"the network is frozen: embeds {len(images):,} images in {VIEWS} views once, about ")
    indices, noise = torch.arange(8), torch.zeros(8, RANDOM_NUMBERS)
    noise[:, 0] = torch.tensor([0.0, 0.24, 0.25, 0.49, 0.5, 0.75, 0.99, 0.1])
    expected = inputs.views[indices, torch.tensor([0, 0, 1, 1, 2, 3, 3, 0])]
    assert torch.equal(inputs(Batch(indices, noise)), expected)


def test_without_augmentation_an_image_has_one_view(data_root):
    images = load("glyphs", "train", data_root)
    labels, told = torch.from_numpy(images.labels), []
    inputs = embedded_once(torch.nn.Flatten(), images.pixels(), labels, (), 0, torch.float32, told.append)
    assert inputs.views.shape[1] == 1
    assert "views" not in told[0]


def test_pictures_lie_here_or_come_along():
    images = torch.randint(0, 256, (6, 1, 4, 4), dtype=torch.uint8)
    indices, noise = torch.tensor([4, 1]), torch.zeros(2, RANDOM_NUMBERS)
    here = Pictures(images)(Batch(indices, noise))
    torch.testing.assert_close(here, images[indices].float() / 255)
    torch.testing.assert_close(Pictures(None)(Batch(indices, noise, images[indices])), here)
    torch.testing.assert_close(Pictures(images, ("flip",))(Batch(indices, noise)), here.flip(-1))


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_the_same_views(tmp_path, data_root):
    config = frozen(data_root, updates=6, checkpoint_every=3, augment=("flip", "crop"))
    train(config, tmp_path / "whole")
    train(config.changed(updates=3), tmp_path / "stopped")
    (tmp_path / "stopped" / "config.json").write_text((tmp_path / "whole" / "config.json").read_text())
    train(config, tmp_path / "stopped", resume=True)
    whole, stopped = (read_tensors(tmp_path / name / "model.safetensors") for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)


def test_it_says_how_long_that_takes(tmp_path, data_root, messages):
    train(frozen(data_root, updates=2), tmp_path / "run", progress=messages)
    assert any(text.startswith("the network is frozen: embeds ") for text in messages.messages)
    assert from_pretrained(tmp_path / "run").description["head"] == "linear"


def test_a_network_that_learns_sees_its_images_every_time(tmp_path, data_root, messages):
    train(frozen(data_root, updates=2, frozen=("0",)), tmp_path / "run", progress=messages)
    assert not any("frozen" in text for text in messages.messages)
