"""What a network makes of an image and its mirror image, as one."""

import torch

from rankshot import fewshot
from rankshot.fewshot.answerer import normalising_with
from rankshot.models import Conv4, Mirrored
from rankshot.models.network import build

IMAGES = torch.rand(6, 3, 20, 24)


def some_network():
    torch.manual_seed(0)
    model = Mirrored(Conv4(in_channels=3, filters=4))
    model(IMAGES)  # running averages of its own
    return model.eval()


def test_the_mean_of_both():
    model = some_network()
    expected = (model.network(IMAGES) + model.network(IMAGES.flip(3))) / 2
    assert torch.equal(model(IMAGES), expected)
    assert torch.allclose(model(IMAGES.flip(3)), model(IMAGES))
    assert not torch.allclose(model.network(IMAGES.flip(3)), model.network(IMAGES))


def test_one_of_them_while_it_learns():
    model = some_network().train()
    assert torch.equal(model(IMAGES), model.network(IMAGES))


def test_each_half_is_normalised_by_its_own_statistics():
    model = some_network()
    with normalising_with(model, "batch", groups=2):
        together = model(IMAGES)
    with normalising_with(model, "batch"):
        one_by_one = torch.cat([model(half) for half in IMAGES.split(3)])
    assert torch.allclose(together, one_by_one, atol=1e-6)


def test_by_its_description():
    model = build({"name": "conv4", "in_channels": 3, "filters": 4, "mirror": True})
    assert isinstance(model, Mirrored)
    assert isinstance(build({"name": "conv4", "mirror": False}), Conv4)
    assert fewshot.can_answer(model, fewshot.Retrieval(5))
