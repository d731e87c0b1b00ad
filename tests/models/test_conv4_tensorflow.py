"""Conv4 with the defaults of TensorFlow: each option by itself, and none of them."""

import pytest
import torch

from rankshot.models import Conv4, from_pretrained, save_pretrained
from rankshot.models.conv4_tensorflow import Conv4TensorFlow
from rankshot.models.network import build
from rankshot.preprocess import Preprocess

OURS = {"norm_scale": True, "norm_epsilon": 1e-5, "first_weights": "torch", "largest_pixel": 1.0}


def norms(network):
    return [part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d)]


def images(count=3):
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_without_any_of_them_it_is_conv4():
    torch.manual_seed(0)
    ours = Conv4(3)
    torch.manual_seed(0)
    theirs = Conv4TensorFlow(3, **OURS)
    assert torch.equal(ours(images()), theirs(images()))
    assert all(norm.weight.requires_grad for norm in norms(theirs))


def test_pixels_are_as_large_as_it_says():
    network = Conv4TensorFlow(3, **{**OURS, "largest_pixel": 255.0}).eval()
    usual = Conv4TensorFlow(3, **OURS).eval()
    usual.load_state_dict(network.state_dict())
    assert torch.allclose(network(images()), usual(255 * images()))


def test_the_scale_does_not_learn():
    network = Conv4TensorFlow(3)
    optimiser = torch.optim.SGD(network.parameters(), 1.0)
    network(images()).square().sum().backward()
    optimiser.step()
    assert all(torch.equal(norm.weight, torch.ones(64)) for norm in norms(network))
    assert any(norm.bias.any() for norm in norms(network))
    assert {norm.eps for norm in norms(network)} == {1e-3}


def test_first_weights():
    bounds = {name: (6 / (9 * inputs + 9 * 64)) ** 0.5 for name, inputs in (("0.0.weight", 3), ("1.0.weight", 64))}
    weights = dict(Conv4TensorFlow(3).named_parameters())
    for name, bound in bounds.items():  # uniform, between -bound and bound
        assert 0.98 * bound < weights[name].abs().max() <= bound


def test_saved_and_opened(tmp_path):
    network = build(
        {"name": "conv4-tensorflow", "norm_epsilon": 0.01, "largest_pixel": 100.0}, Preprocess(3, 32, 32)
    ).eval()
    save_pretrained(network, tmp_path / "kept")
    opened = from_pretrained(tmp_path / "kept").eval()
    assert torch.equal(opened(images()), network(images()))
    assert {norm.eps for norm in norms(opened)} == {0.01}


@pytest.mark.parametrize("wrong", [{"norm_epsilon": 0.0}, {"first_weights": "zeros"}, {"largest_pixel": -1.0}])
def test_bad_settings(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        build({"name": "conv4-tensorflow", **wrong}, Preprocess(3, 32, 32))
