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


@pytest.mark.parametrize("shape", [(28, 28), (2, 28, 28), (2, 1, 15, 28)])
def test_images_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="at least 16x16") as error:
        Conv4()(torch.zeros(shape))
    assert str(shape) in str(error.value)
