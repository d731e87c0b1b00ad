"""The derivatives that are written out, against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from rankshot.methods.derivable import convolved, pooled


@pytest.mark.parametrize(("function", "shapes"), [(convolved, [(2, 2, 4, 5), (3, 2, 3, 3)]), (pooled, [(2, 2, 4, 5)])])
def test_derivatives(function, shapes):
    torch.manual_seed(0)
    inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)
