"""The largest layer of a network, against one that is really computed."""

import pytest
import torch
from torch import nn

from rankshot.models import Conv4
from rankshot.models.efficientnet_lite import EfficientNetLite
from rankshot.models.largest_layer import images_at_once, largest_layer


@pytest.mark.parametrize(("network", "shape"), [(Conv4(3, 16), (3, 40, 32)), (EfficientNetLite(), (3, 64, 64))])
def test_as_if_it_were_computed(network, shape):
    sizes = []
    for module in network.modules():
        module.register_forward_hook(lambda module, inputs, output: sizes.append(output.numel()))
    network.eval()(torch.zeros(1, *shape))
    for module in network.modules():
        module._forward_hooks.clear()
    assert largest_layer(network, shape) == max(sizes)
    assert not any(module._forward_hooks for module in network.modules())


def test_a_network_that_cannot_be_looked_at_so():
    class Looks(nn.Module):
        def forward(self, images):
            return images if images.sum().item() else -images

    assert largest_layer(Looks(), (3, 8, 8)) == 0


def test_how_many_images_at_once():
    cpu, gpu, shape = torch.device("cpu"), torch.device("cuda"), (1, 28, 28)
    assert images_at_once(64 * 28 * 28, shape, cpu) == 83
    assert images_at_once(2**30, shape, cpu) == 1
    assert images_at_once(64 * 28 * 28, shape, gpu) == 2**28 // (64 * 28 * 28)
    assert images_at_once(0, shape, cpu) == 83  # nobody knows
    assert images_at_once(1, (3, 224, 224), cpu) == 6  # the images themselves take memory
    assert images_at_once(64 * 28 * 28, shape, torch.device("meta")) == 83  # as on a CPU
