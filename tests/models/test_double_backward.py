"""The derivatives that are written out, against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from rankshot.models.double_backward import convolved, pooled


@pytest.mark.parametrize(("function", "shapes"), [(convolved, [(2, 2, 4, 5), (3, 2, 3, 3)]), (pooled, [(2, 2, 4, 5)])])
def test_derivatives(function, shapes):
    torch.manual_seed(0)
    inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_values_that_lie_in_another_order():
    values = torch.randn(4, 2, 6, 8, dtype=torch.float64, requires_grad=True)
    for other in (values.transpose(2, 3), values.contiguous(memory_format=torch.channels_last)):
        found, expected = (
            torch.autograd.grad(pool(other).pow(2).sum(), values, retain_graph=True)[0]
            for pool in (lambda each: pooled(each)[0], lambda each: torch.nn.functional.max_pool2d(each, 2))
        )
        torch.testing.assert_close(found, expected)
