"""The largest layer of a network, against one that is really computed."""

import pytest
import torch
from torch import nn

from rankshot.models import Conv4
from rankshot.models.efficientnet_lite import EfficientNetLite
from rankshot.models.largest_layer import largest_layer


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
