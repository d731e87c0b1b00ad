"""What measures a network while it learns."""

import pytest
import torch
from small import small

from rankshot import data
from rankshot.methods import Context, make_method
from rankshot.models import Conv4
from rankshot.models.largest_layer import largest_layer
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.training.validation import InPrecision, Validator


class Told(Conv4):
    """Says what it computed in."""

    def forward(self, images):
        self.computed_in = self[0][0](images).dtype
        return super().forward(images)


def validator(precision, method="map-dlm"):
    torch.manual_seed(0)
    config = small(method=method, validation_ways=(3,), validation_episodes=20)
    network = Told(filters=8)
    network.preprocess, network.embedding_dim = Preprocess(1, 28, 28), 8
    made = make_method(config.method, Context(8, 20, 4, 32))
    made.precision = precision
    model = made.network(network)
    images = data.load("glyphs", "val")
    return network, Validator(config, model, made, images, images.pixels())


def test_a_network_is_validated_in_the_precision_that_it_learns_in(data_root):
    plain, exact = validator(torch.float32)
    results, score = exact.measure()
    assert plain.computed_in == torch.float32
    coarse, half = validator(torch.bfloat16)
    found, _ = half.measure()
    assert coarse.computed_in == torch.bfloat16
    assert [str(result.task) for result in found] == [str(result.task) for result in results]
    assert all(abs(one.mean - other.mean) < 0.05 for one, other in zip(results, found, strict=True))
    assert score == results[exact.decisive].mean


def test_embeddings_are_compared_in_float32():
    network = InPrecision(Conv4(filters=8), torch.bfloat16).eval()
    assert network(torch.rand(2, 1, 28, 28)).dtype == torch.float32
    assert network.wrapped_network is network.network


@pytest.mark.parametrize(("name", "size"), [("conv4", 28), ("resnet12", 84), ("efficientnet-lite0", 84)])
def test_as_many_images_at_once_as_of_the_network_itself(name, size):
    """How many is told by its layers, which are looked at on a device that has no autocast."""
    network = build({"name": name, **({"in_channels": 3} if name == "conv4" else {})}, Preprocess(3, size, size))
    wanted = largest_layer(network, (3, size, size))
    assert wanted > 0
    assert largest_layer(InPrecision(network, torch.bfloat16), (3, size, size)) == wanted


def test_what_has_a_rule_of_its_own_is_asked_as_it_is(data_root):
    _, own = validator(torch.bfloat16, "prototypical")
    assert own.measured is own.model
