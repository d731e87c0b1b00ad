"""Conv4 with strides: what it computes, as a module and as a function of its weights."""

import pytest
import torch
from torch import nn

import rankshot
from rankshot.models import from_pretrained, save_pretrained
from rankshot.models.conv4_strided import Conv4Strided
from rankshot.models.network import build
from rankshot.preprocess import Preprocess


def images(count=3, height=15, width=18):
    return torch.rand(count, 1, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def small():
    torch.manual_seed(0)
    network = Conv4Strided(1, 4).double()
    for _, norm, _ in network:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias)
    return network


def test_four_times_half_of_the_image_and_the_mean():
    network, values = small(), images()
    for convolution, norm, _ in network:
        values = nn.functional.conv2d(values, convolution.weight, stride=2, padding=1)
        variance, mean = torch.var_mean(values, (0, 2, 3), correction=0, keepdim=True)
        normal = (values - mean) / (variance + 1e-5).sqrt()
        values = nn.functional.relu(normal * norm.weight[:, None, None] + norm.bias[:, None, None])
    assert values.shape == (3, 4, 1, 2)
    torch.testing.assert_close(network(images()), values.mean((2, 3)))


def test_as_a_function_of_its_weights():
    network = small().train()
    found, statistics = network.as_function(dict(network.named_parameters()), images())
    torch.testing.assert_close(found, network(images()))
    for (_, norm, _), (mean, variance) in zip(network, statistics, strict=True):
        norm.running_mean.copy_(mean.detach())
        norm.running_var.copy_(variance.detach())
    others = images(5, 9, 9)
    known, _ = network.as_function(dict(network.named_parameters()), others, statistics)
    torch.testing.assert_close(known, network.eval()(others))


def test_other_channels():
    network = small()
    with pytest.raises(ValueError, match="made for images of 1 channels, got 3"):
        network.as_function(dict(network.named_parameters()), torch.rand(2, 3, 16, 16).double())


def test_numbers_below_one():
    with pytest.raises(ValueError, match="must be 1 or more, got 1 and 0"):
        Conv4Strided(1, 0)


def test_made_directly_saved_and_opened(tmp_path):
    network = rankshot.wrap(Conv4Strided(1, 8), preprocess=Preprocess(1, 28, 28)).eval()
    save_pretrained(network, tmp_path / "kept")
    seen = torch.rand(2, 1, 28, 28)
    assert torch.equal(from_pretrained(tmp_path / "kept").eval()(seen), network(seen))


def test_saved_and_opened(tmp_path):
    network = build({"name": "conv4-strided", "filters": 8}, Preprocess(1, 28, 28)).eval()
    assert network.embedding_dim == 8
    save_pretrained(network, tmp_path / "kept")
    seen = torch.rand(2, 1, 28, 28)
    assert torch.equal(from_pretrained(tmp_path / "kept").eval()(seen), network(seen))
