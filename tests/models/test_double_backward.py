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


@pytest.mark.parametrize("size", [(4, 5), (5, 4), (7, 7), (2, 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_strides(stride, size):
    torch.manual_seed(0)
    values = torch.randn(2, 2, *size, dtype=torch.float64, requires_grad=True)
    filters = torch.randn(3, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    expected = torch.nn.functional.conv2d(values, filters, stride=stride, padding=1)
    torch.testing.assert_close(convolved(values, filters, stride), expected)
    assert gradcheck(convolved, (values, filters, stride))
    assert gradgradcheck(convolved, (values, filters, stride))


def test_values_that_lie_in_another_order():
    values = torch.randn(4, 2, 6, 8, dtype=torch.float64, requires_grad=True)
    for other in (values.transpose(2, 3), values.contiguous(memory_format=torch.channels_last)):
        found, expected = (
            torch.autograd.grad(pool(other).pow(2).sum(), values, retain_graph=True)[0]
            for pool in (lambda each: pooled(each)[0], lambda each: torch.nn.functional.max_pool2d(each, 2))
        )
        torch.testing.assert_close(found, expected)
