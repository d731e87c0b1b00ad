"""Conv4 is the paper's network."""

import pytest
import torch

from rankshot.models import Conv4


@pytest.mark.parametrize(("size", "channels", "dimensions"), [(28, 1, 64), (64, 3, 1024), (84, 3, 1600)])
def test_dimensions(size, channels, dimensions, device):
    model = Conv4(in_channels=channels).to(device)
    assert model(torch.rand(2, channels, size, size, device=device)).shape == (2, dimensions)


def test_layers():
    kinds = [type(layer).__name__ for layer in Conv4().modules() if not list(layer.children())]
    assert kinds == ["Conv2d", "BatchNorm2d", "MaxPool2d", "ReLU"] * 4 + ["Flatten"]
    assert sum(each.numel() for each in Conv4().parameters()) == 9 * 1 * 64 + 3 * 9 * 64 * 64 + 4 * 2 * 64
    assert Conv4(in_channels=3, filters=32)(torch.rand(1, 3, 32, 32)).shape == (1, 128)


def test_pooling_before_the_relu_changes_nothing():
    model = Conv4(in_channels=3, filters=8).double()
    images = torch.rand(4, 3, 21, 21, dtype=torch.float64)
    values, gradients = [], []
    for order in ([0, 1, 2, 3], [0, 1, 3, 2]):  # as it is, and as the paper has it
        model.zero_grad()
        embeddings = images
        for block in list(model)[:-1]:
            for part in order:
                embeddings = block[part](embeddings.clone())
        embeddings.square().sum().backward()
        values.append(embeddings)
        gradients.append(torch.cat([each.grad.flatten() for each in model.parameters()]))
    assert torch.equal(*values)
    assert torch.equal(*gradients)


def test_channels_last_changes_nothing_but_speed():
    model = Conv4(in_channels=3).double().eval()
    images = torch.rand(2, 3, 28, 28, dtype=torch.float64)
    plain = torch.nn.Sequential(*model.children()).to(memory_format=torch.contiguous_format)
    torch.testing.assert_close(model(images), plain(images))


def test_beyond_the_edge():
    images = torch.rand(4, 3, 20, 20, dtype=torch.float64)
    model = Conv4(in_channels=3, filters=8, beyond=0.4).double()
    first = model[0]
    framed = torch.nn.functional.pad(images, (1, 1, 1, 1), value=0.4)
    expected = first[1](torch.nn.functional.conv2d(framed, first[0].weight))  # in training batch norm ignores a shift
    seen = []
    first[1].register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    model(images)
    torch.testing.assert_close(seen[0], expected)


@pytest.mark.parametrize("beyond", [-0.1, 1.5, float("nan")])
def test_beyond_is_a_brightness(beyond):
    with pytest.raises(ValueError, match="beyond must be from 0 to 1"):
        Conv4(beyond=beyond)


@pytest.mark.parametrize("shape", [(28, 28), (2, 28, 28), (2, 1, 15, 28)])
def test_images_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="at least 16x16") as error:
        Conv4()(torch.zeros(shape))
    assert str(shape) in str(error.value)
