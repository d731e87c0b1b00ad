"""ResNet-12 as the few-shot papers have it, and DropBlock."""

import pytest
import torch
from models.learning import loss_before_and_after
from torch import nn

from rankshot.models import ResNet12
from rankshot.models.network import NETWORKS, build, describe
from rankshot.models.resnet12 import RAMP, DropBlock
from rankshot.preprocess import Preprocess


@pytest.mark.parametrize(
    ("widths", "dimensions", "millions"), [("64-160-320-640", 640, 12.4), ("64-128-256-512", 512, 8.0)]
)
def test_sizes(widths, dimensions, millions):
    preprocess = Preprocess(3, 84, 84)
    model = build(describe("resnet12", preprocess, {"widths": widths}), preprocess)
    assert model.embedding_dim == dimensions
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.06)
    kinds = [type(layer).__name__ for layer in model.blocks[0].modules() if not list(layer.children())]
    convolution = ["Conv2d", "BatchNorm2d"]
    layers = [*convolution, "LeakyReLU", *convolution, "LeakyReLU", *convolution, *convolution]
    assert kinds == [*layers, "LeakyReLU", "MaxPool2d", "DropBlock"]
    assert model(torch.rand(2, 3, 16, 16)).shape == (2, dimensions)


def after(rate, size, batches):
    module = DropBlock(rate, size)
    module.batches.fill_(batches - 1)
    return module


@pytest.mark.parametrize("size", [1, 3, 5])
def test_about_as_many_places_are_dropped_as_asked_for(size):
    torch.manual_seed(0)
    values = torch.ones(200, 8, 12, 12)
    result = after(0.2, size, RAMP)(values)
    dropped = float((result == 0).float().mean())
    assert 0.15 < dropped < 0.21  # squares that overlap drop a little less
    assert float(result.mean()) == pytest.approx(1, abs=1e-4)
    assert len(result.unique()) == 2
    half = float((after(0.2, size, RAMP // 2)(values) == 0).float().mean())
    assert half == pytest.approx(dropped / 2, rel=0.15)
    assert float((after(0.2, size, 1)(values) == 0).float().mean()) < 1e-3


def test_whole_squares_are_dropped():
    torch.manual_seed(0)
    gone = after(0.05, 3, RAMP)(torch.ones(300, 1, 9, 9)) == 0
    assert gone.any()
    whole = -nn.functional.max_pool2d(-gone.float(), 3, stride=1)  # 1 where a square of three begins that is gone whole
    squares = nn.functional.max_pool2d(nn.functional.pad(whole, [2] * 4), 3, stride=1)
    assert torch.equal(squares.bool(), gone)


def test_nothing_is_dropped_outside_of_training():
    values = torch.rand(2, 4, 5, 5)
    module = after(0.5, 3, RAMP)
    assert torch.equal(module.eval()(values), values)
    assert int(module.batches) == RAMP - 1
    assert torch.equal(after(0.0, 3, RAMP)(values), values)
    assert torch.isfinite(after(0.9, 5, RAMP)(torch.rand(2, 4, 2, 2))).all()  # a square larger than the picture


def test_it_learns():
    torch.manual_seed(0)
    before, after = loss_before_and_after(ResNet12(widths="64-128-256-512"), 512, 16, updates=6)
    assert after < 0.5 * before


def test_bad_input():
    with pytest.raises(ValueError, match="at least 16x16 pixels"):
        ResNet12()(torch.zeros(2, 3, 15, 15))
    with pytest.raises(ValueError, match="widths must be one of"):
        NETWORKS.choose("resnet12", {"widths": "1-2-3-4"})
    with pytest.raises(ValueError, match=r"drop_rate must be a number from 0 to 0\.9"):
        NETWORKS.choose("resnet12", {"drop_rate": 1.0})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"in_channels": 0}, "in_channels must be a whole number from 1 to 16,384, got 0"),
        ({"widths": "1-2"}, "widths must be one of '64-160-320-640', '64-128-256-512', got '1-2'"),
        ({"widths": [64, 128, 256, 512]}, r"widths must be one of .*, got \[64, 128, 256, 512\]"),
        ({"drop_rate": 1.0}, r"drop_rate must be a number from 0 to 0\.9, got 1\.0"),
        ({"block_size": 0}, "block_size must be a whole number from 1 to 21, got 0"),
    ],
    ids=str,
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        ResNet12(**settings)
