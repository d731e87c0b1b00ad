"""Glimpses against loops, pairs against a plain list of them, answers one by one; runs that are kept and resumed."""

import math

import numpy as np
import pytest
import torch
from methods.made import made

from rankshot import data, fewshot
from rankshot.data.episode_batches import EpisodeSampler
from rankshot.methods import arc
from rankshot.methods.glimpse import filters, glimpse
from rankshot.models import from_pretrained
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import TrainConfig, train
from rankshot.training.run_folder import STATE

SMALL = {"glimpses": 2, "window": 3, "hidden": 6}


def doubles(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain_filter(centre, zoom, length, window, number):
    """As the paper writes it, pixel by pixel."""
    place = (length - 1) * (centre + 1) / 2 + length / window * (1 - abs(zoom)) * (number - (window - 1) / 2)
    width = math.exp(1 - 2 * abs(zoom))
    values = [1 / (math.pi * width * (1 + ((pixel - place) / width) ** 2)) for pixel in range(length)]
    return [value / (sum(values) + 1e-4) for value in values]


@pytest.mark.parametrize("where", [(0.0, 0.0, 0.0), (0.3, -0.8, 0.4), (-1.0, 1.0, -1.0), (40.0, 0.1, 0.9), (0.2, 0.1, 1.7)])
def test_a_glimpse_by_hand(where):
    images, window = doubles(1, 5, 7, 2), 3
    found = glimpse(images, torch.tensor([where], dtype=torch.float64), window).view(window, window, 2)
    for channel in range(2):
        for row in range(window):
            down = plain_filter(where[0], where[2], 5, window, row)
            for column in range(window):
                across = plain_filter(where[1], where[2], 7, window, column)
                value = sum(down[y] * images[0, y, x, channel].item() * across[x] for y in range(5) for x in range(7))
                assert found[row, column, channel].item() == pytest.approx(value, rel=1e-9)


def test_zoomed_in_it_sees_a_spot_and_zoomed_out_all_of_it():
    wide, narrow = (filters(torch.zeros(1), torch.tensor([zoom]), 21, 3)[0] for zoom in (0.0, 1.0))
    assert wide.argmax(-1).tolist() == [3, 10, 17]
    assert narrow.argmax(-1).tolist() == [10, 10, 10]
    assert narrow.max() > 0.5 > wide.max()
    torch.testing.assert_close(wide.sum(-1), torch.ones(3), rtol=1e-3, atol=0)


def test_gradients_of_a_glimpse():
    images, where = doubles(2, 4, 5, 2).requires_grad_(), (doubles(2, 3, seed=1) - 0.45).requires_grad_()
    assert torch.autograd.gradcheck(lambda *given: glimpse(*given, 3), (images, where))


def test_gradients_of_a_comparison():
    torch.manual_seed(0)
    model = made("arc", **SMALL)[0].double()
    torch.nn.init.normal_(model.comparator.look.weight)  # else it hardly moves
    one, other = (doubles(2, 5, 6, 1, seed=seed).requires_grad_() for seed in (1, 2))
    assert torch.autograd.gradcheck(model.alike, (one, other))
    model.alike(one, other).sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in model.parameters())


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_score_depends_on_both_images(blocks):
    torch.manual_seed(0)
    model = made("arc", **SMALL, blocks=blocks)[0].eval()
    one, other, third = (model.seen(torch.rand(1, 1, 16, 16)) for _ in range(3))
    scores = [model.alike(*pair).item() for pair in ((one, other), (one, third), (third, other), (other, one))]
    assert len(set(scores)) == 4


@pytest.mark.parametrize("per_class", [2, 5])
def test_the_loss_is_of_as_many_pairs_of_one_class_as_of_two(per_class):
    torch.manual_seed(0)
    model, method = made("arc", batch_classes=3, batch_size=3 * per_class, **SMALL)
    model, images = model.double(), doubles(3 * per_class, 1, 16, 16)
    labels = torch.tensor([7, 2, 4]).repeat_interleave(per_class)
    loss, embeddings = method.learn(model, images, labels)
    of_class, lost = model.seen(images).view(3, per_class, 1, 16, 16, 1), []
    for label in range(3):
        for number in range(per_class):
            image, before = of_class[label, number], (number - 1) % per_class
            same = model.alike(image, of_class[label, before]).sigmoid()
            different = model.alike(image, of_class[(label - 1) % 3, before]).sigmoid()
            lost += [-same.log(), -(1 - different).log()]
    torch.testing.assert_close(loss, torch.cat(lost).mean())
    assert embeddings is None


@pytest.mark.parametrize("at_once", [2**24, 1])
def test_several_episodes_at_once(at_once, monkeypatch):
    """A class's score is the mean over its two examples, in whatever order they come and however many pairs fit."""
    monkeypatch.setitem(arc.NUMBERS_AT_ONCE, "cpu", at_once)
    torch.manual_seed(0)
    model = made("arc", **SMALL)[0].double()
    support, queries, labels = doubles(2, 6, 1, 16, 16), doubles(2, 4, 1, 16, 16, seed=1), torch.tensor([2, 0, 1, 1, 0, 2])
    found = model.answer_all(support, labels, queries)
    for episode in range(2):
        torch.testing.assert_close(model.answer(support[episode], labels, queries[episode]), found[episode])
        for query in range(4):
            for label in range(3):
                examples = model.seen(support[episode][labels == label])
                scores = model.alike(model.seen(queries[episode, [query]]).expand_as(examples), examples)
                torch.testing.assert_close(found[episode, query, label], scores.mean().detach())


def test_to_answer_changes_nothing():
    """By running averages, whatever the mode: queries tell one another nothing."""
    torch.manual_seed(0)
    model = made("arc", **SMALL, blocks=2)[0].train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    images, labels = torch.rand(7, 1, 16, 16), torch.arange(3)
    together = model.answer(images[:3], labels, images[3:])
    alone = torch.cat([model.answer(images[:3], labels, each[None]) for each in images[3:]])
    torch.testing.assert_close(together, alone)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(("channels", "height", "width"), [(3, 17, 40), (1, 64, 16)])
@pytest.mark.parametrize("blocks", [0, 1])
def test_images_of_any_size(channels, height, width, blocks):
    torch.manual_seed(0)
    embedder, size = {"name": "conv4", "in_channels": channels, "filters": 4}, Preprocess(channels, height, width)
    model, method = made("arc", embedder=embedder, preprocess=size, **SMALL, blocks=blocks)
    assert method.learn(model, torch.rand(12, *size.shape), torch.arange(12) // 4)[0] > 0
    for shape in (size.shape, (channels, 30, 20)):
        assert model.answer(torch.rand(3, *shape), torch.arange(3), torch.rand(4, *shape)).shape == (4, 3)
    other = torch.rand(3, channels + 1, height, width)
    with pytest.raises(ValueError, match=f"was made for images of {channels} channels, got {channels + 1}"):
        model.answer(other, torch.arange(3), other)


def test_pictures_are_normalised_first():
    torch.manual_seed(0)
    plain, _ = made("arc", **SMALL)
    size = Preprocess(1, 16, 16, mean=(0.25,), deviation=(0.5,))
    model, _ = made("arc", preprocess=size, **SMALL)
    model.load_state_dict(plain.state_dict())
    images, labels = torch.rand(6, 1, 16, 16), torch.arange(3)
    expected = plain.answer((images[:3] - 0.25) / 0.5, labels, (images[3:] - 0.25) / 0.5)
    torch.testing.assert_close(model.answer(images[:3], labels, images[3:]), expected)


def test_what_it_cannot():
    model, _ = made("arc", **SMALL)
    with pytest.raises(ValueError, match="has no embeddings: ask its `answer`"):
        model(torch.rand(2, 1, 16, 16))
    assert not fewshot.can_answer(model, fewshot.Retrieval(5))
    assert fewshot.can_answer(model, fewshot.Classification(20, 1))
    with pytest.raises(ValueError, match="has no embeddings: leave out mirror and head"):
        made("arc", embedder={"name": "conv4", "in_channels": 1, "filters": 4, "mirror": True}, **SMALL)
    with pytest.raises(ValueError, match="it looks at maps of Conv4 alone, and not of ResNet12: leave out blocks"):
        made("arc", embedder={"name": "resnet12", "in_channels": 1}, **SMALL, blocks=1)
    with pytest.raises(ValueError, match="maps of Conv4 alone, and not of Conv4TensorFlow"):
        made("arc", embedder={"name": "conv4-tensorflow", "in_channels": 1}, **SMALL, blocks=1)
    made("arc", embedder={"name": "resnet12", "in_channels": 1}, **SMALL)  # whose pixels are pixels


@pytest.mark.parametrize("blocks", [0, 1])
@pytest.mark.slow
def test_a_run_is_kept_opened_and_resumed(tmp_path, blocks):
    """To the last bit, whether it was stopped on its way or not."""
    few = {
        "batch_classes": 4,
        "batch_size": 12,
        "filters": 4,
        "checkpoint_every": 2,
        "validate_every": 0,
        "augment": ("crop",),
    }
    config = {"method": "arc", **SMALL, "blocks": blocks, **few}
    train(TrainConfig.of(**config, updates=4), tmp_path / "whole")
    train(TrainConfig.of(**config, updates=2), tmp_path / "parts")
    train(TrainConfig.of(**config, updates=4), tmp_path / "parts", resume=True)
    whole, parts = (read_tensors(tmp_path / name / STATE) for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(tensor, parts[name]) for name, tensor in whole.items())
    model = from_pretrained(tmp_path / "whole")
    assert (model.comparator.glimpses, model.comparator.window) == (2, 3)
    again = build(model.description, model.preprocess)
    again.load_state_dict(model.state_dict())
    images, labels = torch.rand(6, 1, 28, 28), torch.arange(3)
    answers = model.answer(images[:3], labels, images[3:])
    assert torch.equal(again.answer(images[:3], labels, images[3:]), answers)
    assert torch.equal(from_pretrained(tmp_path / "parts").answer(images[:3], labels, images[3:]), answers)


def test_it_learns_letters_by_maps(data_root):
    """What it sees of pixels is in test_on_glyphs.py."""
    torch.manual_seed(0)
    glyphs = data.load("glyphs", "train", data_root)
    keep = glyphs.labels < 10
    shown = data.ImageSet(glyphs.images[keep], glyphs.labels[keep], glyphs.classes[:10])
    model, method = made(
        "arc", batch_classes=5, batch_size=40, preprocess=Preprocess(1, 28, 28), glimpses=2, hidden=64, blocks=2
    )
    images, labels = torch.from_numpy(shown.images) / 255, torch.from_numpy(np.array(shown.labels))
    sampler, optimiser = EpisodeSampler(labels, 5, 8), torch.optim.Adam(model.parameters(), lr=0.003)
    for update in range(150):
        drawn = sampler.draw(update)
        optimiser.zero_grad()
        method.learn(model.train(), images[drawn], labels[drawn])[0].backward()
        optimiser.step()
    (result,) = fewshot.evaluate(model, shown, [fewshot.Classification(5, 1, per_class=10)], episodes=30)
    assert result.mean - result.interval > 0.4, str(result)
