"""The packed sort gives the order of torch's stable sort; and without NumPy everything still works."""

import subprocess
import sys
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankshot.ranking import sorting


@settings(max_examples=100, deadline=None)
@given(
    st.integers(sorting.PACK_FROM, 90),
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=8),
    st.integers(0, 2**31),
)
def test_packed_sort_is_the_stable_sort(width, values, seed):
    random = torch.Generator().manual_seed(seed)
    choices = torch.tensor([*values, 0.0, -0.0, 1e-45, -1e-45])
    scores = choices[torch.randint(len(choices), (4, width), generator=random)]
    expected, order = scores.sort(dim=-1, descending=True, stable=True)
    found, columns = sorting.sort_rows(scores)
    assert torch.equal(columns, order)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("shape", [(1, 1), (3, 63), (3, 64), (50, 2000)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sizes(shape, dtype, device):
    scores = torch.randn(shape, dtype=dtype).to(device)
    expected, order = scores.sort(dim=-1, descending=True, stable=True)
    found, columns = sorting.sort_rows(scores)
    assert torch.equal(columns, order)
    assert torch.equal(found, expected)


def test_the_packed_sort_is_what_runs_here(monkeypatch):
    assert sorting.HAS_NUMPY
    monkeypatch.setattr(sorting, "_sort_packed", lambda scores: "packed")
    assert sorting.sort_rows(torch.zeros(1, sorting.PACK_FROM)) == "packed"


WITHOUT_NUMPY = """
import sys, warnings
sys.modules["numpy"] = None  # importing it fails from here on
warnings.simplefilter("ignore")  # torch itself remarks on it
import torch
import rankshot
from rankshot.ranking import sorting
assert not sorting.HAS_NUMPY
embeddings = torch.randn(200, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
loss = rankshot.losses.RankingLoss()(embeddings, torch.arange(200) % 20)
loss.backward()
print(f"{loss.item():.5f} {embeddings.grad.abs().sum().item():.5f}")
"""


def test_without_numpy(capsys):
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with_numpy = WITHOUT_NUMPY.replace('sys.modules["numpy"] = None', "").replace("assert not", "assert")
    with warnings.catch_warnings():
        exec(with_numpy, {})
    assert done.stdout == capsys.readouterr().out
