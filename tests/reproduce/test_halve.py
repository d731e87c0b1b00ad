"""Weights in half precision: half of the bytes, nearly the same vectors, and nothing left of what was measured before."""

import pytest
import torch
from small import small

from rankshot import Embedder
from rankshot.models import from_pretrained
from rankshot.reproduce.halve import halve
from rankshot.tensors import read_notes, read_tensors, write_tensors
from rankshot.training import train


@pytest.fixture
def run(tmp_path, data_root):
    train(small(updates=2, validate_every=0, root=data_root), tmp_path / "run")
    return tmp_path / "run"


def test_half_of_the_bytes(run, tmp_path):
    images = torch.rand(4, 1, 28, 28)
    before, size = from_pretrained(run).eval()(images), (run / "model.safetensors").stat().st_size
    notes = read_notes(run / "model.safetensors")
    (run / "evaluation.json").write_text("{}")
    assert halve(run) < 0.7 * size
    assert read_notes(run / "model.safetensors") == notes
    assert not (run / "evaluation.json").exists()
    network = from_pretrained(run).eval()
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}
    torch.testing.assert_close(network(images), before, atol=1e-2, rtol=1e-2)
    # What is passed on stays as small.
    Embedder(run).save_pretrained(tmp_path / "copy")
    kept = read_tensors(tmp_path / "copy" / "model.safetensors")
    assert {tensor.dtype for tensor in kept.values() if tensor.is_floating_point()} == {torch.float16}


def test_what_half_precision_cannot_hold(run):
    path = run / "model.safetensors"
    weights = read_tensors(path)
    name = next(name for name, tensor in weights.items() if tensor.is_floating_point())
    weights[name] = torch.full_like(weights[name], 1e6)
    write_tensors(path, weights, read_notes(path))
    with pytest.raises(ValueError, match="that half precision cannot hold"):
        halve(run)
    assert read_tensors(path)[name].dtype == torch.float32
