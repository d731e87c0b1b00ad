"""EfficientNet-Lite is the one that its authors made: compared with another implementation of it, weights and all."""

import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from models.learning import loss_before_and_after
from torch import nn

from rankshot.models import EfficientNetLite
from rankshot.models.efficientnet_lite import SameConv2d, preprocess_at
from rankshot.models.imagenet import renamed
from rankshot.models.network import NETWORKS, build, describe

# The sizes that ImageNet was learned at: the other implementation pads for these alone.
NAMES = {"efficientnet-lite0": 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}


@pytest.mark.parametrize(("name", "size"), NAMES.items())
def test_it_is_the_same_network(name, size):
    torch.manual_seed(0)
    reference = EfficientNet.from_name(name).eval()
    for module in reference.modules():
        if isinstance(module, nn.BatchNorm2d):  # as if it had learned
            nn.init.normal_(module.running_mean, 0, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    network = NETWORKS[name](preprocess_at(size)).eval()
    network.load_state_dict(renamed(reference.state_dict()))  # every tensor, and no other
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = reference.extract_features(images).mean((2, 3))
        torch.testing.assert_close(network(images), expected, atol=1e-5, rtol=1e-5)
    learns = sum(parameter.numel() for parameter in network.parameters())
    assert f"{learns / 1e6:.1f} million weights" in NETWORKS[name].summary


@pytest.mark.parametrize(("name", "size"), {**NAMES, "efficientnet-lite2": 288}.items())
def test_its_own_size(name, size):
    preprocess = NETWORKS[name].about["preprocess"]
    assert (preprocess.height, preprocess.width) == (size, size)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_is_as_little_as_it_takes(kernel, stride):
    for size in range(5, 12):
        layer = SameConv2d(1, 1, kernel, stride, bias=False)
        nn.init.ones_(layer.weight)
        sums = layer(torch.ones(1, 1, size, size))[0, 0]
        outputs = -(-size // stride)
        assert sums.shape == (outputs, outputs)
        missing = max((outputs - 1) * stride + kernel - size, 0)
        rows = [sum(0 <= at * stride - missing // 2 + k < size for k in range(kernel)) for at in range(outputs)]
        torch.testing.assert_close(sums, torch.outer(torch.tensor(rows), torch.tensor(rows)).float())


def test_it_learns():
    torch.manual_seed(0)
    model = EfficientNetLite()
    before, after = loss_before_and_after(model, 1280, 32, updates=8)
    assert after < 0.5 * before
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("shape", [(2, 3, 31, 64), (3, 64, 64)])
def test_images_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="at least 32x32 pixels") as error:
        EfficientNetLite()(torch.zeros(shape))
    assert str(shape) in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"in_channels": 0}, "in_channels must be a whole number from 1 to 16,384, got 0"),
        ({"in_channels": 3.0}, r"in_channels must be a whole number from 1 to 16,384, got 3\.0"),
        ({"width": -1}, r"width must be a number from 0\.1 to 10, got -1"),
        ({"depth": float("nan")}, r"depth must be a number from 0\.1 to 10, got nan"),
    ],
    ids=str,
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        EfficientNetLite(**settings)


def test_a_size_that_it_cannot_take():
    preprocess = NETWORKS["efficientnet-lite0"].about["preprocess"].__class__(3, 16, 16)
    with pytest.raises(ValueError, match="'efficientnet-lite0' cannot take images of 3x16x16"):
        build(describe("efficientnet-lite0", preprocess, {}), preprocess)
