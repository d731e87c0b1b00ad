"""Shared by all tests: one thread a worker, so that two workers on two cores do not fight; and the devices there are."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return request.param
