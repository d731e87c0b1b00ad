"""A head on a network: what it computes, what is saved, and that it can learn alone."""

import pytest
import torch
from small import small

from rankshot import Embedder
from rankshot.models import from_pretrained, save_pretrained
from rankshot.models.headed import headed_in
from rankshot.models.network import build, trunk_of
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import train
from rankshot.training.fitting import config_for

PICTURES = Preprocess(1, 28, 28)


def headed(**more):
    return build({"name": "conv4", "in_channels": 1, "filters": 8, "head": 5, **more}, PICTURES).eval()


def test_a_linear_map_of_what_the_network_gives(tmp_path):
    network, images = headed(), torch.rand(3, 1, 28, 28)
    assert network.embedding_dim == 5
    with torch.no_grad():
        expected = trunk_of(network)(images) @ headed_in(network).head.weight.T
        torch.testing.assert_close(network(images), expected)
        again = from_pretrained(save_pretrained(network, tmp_path / "saved"))
        assert torch.equal(again(images), network(images))
        mirrored = headed(mirror=True)
        torch.testing.assert_close(mirrored(images), mirrored(images.flip(-1)))
    assert headed_in(build({"name": "conv4", "in_channels": 1, "filters": 8}, PICTURES)) is None


def test_with_its_network_frozen_it_learns_alone(tmp_path, drawn):
    config = small(updates=3, validate_every=0, head=6, frozen=("all",), root=drawn)
    train(config.changed(updates=1, learning_rate=1e-30), tmp_path / "before")
    train(config, tmp_path / "after")
    before, after = (read_tensors(tmp_path / name / "model.safetensors") for name in ("before", "after"))
    assert {name for name in after if not torch.equal(before[name], after[name])} == {"head.weight"}


def test_a_run_goes_on_with_the_head_of_another(tmp_path, drawn):
    train(small(updates=2, validate_every=0, head=6, root=drawn), tmp_path / "first")
    config = config_for(init=str(tmp_path / "first"), updates=1, validate_every=0, learning_rate=1e-30, root=str(drawn))
    assert config.network.head == 6
    train(config, tmp_path / "second")
    first, second = (headed_in(from_pretrained(tmp_path / name)).head.weight for name in ("first", "second"))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("head", [0, -3, 2**15])
def test_no_head(head):
    with pytest.raises(ValueError, match="head must be a whole number from 1 to 16,384"):
        small(head=head)


def test_everything_frozen_and_no_head(tmp_path, drawn):
    with pytest.raises(ValueError, match=r"nothing to learn: all weights are frozen, and there is no head \(--head 128\)"):
        train(small(updates=2, validate_every=0, frozen=("all",), root=drawn), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("head", ["scale", "linear"])
def test_a_head_that_starts_as_the_identity(head, tmp_path):
    network, images = headed(head=head), torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        expected = torch.nn.functional.normalize(trunk_of(network)(images), dim=-1)
        torch.testing.assert_close(network(images), expected)
        for weight in headed_in(network).head.parameters():
            weight += 0.1 * torch.rand(weight.shape)
        vectors = torch.nn.functional.normalize(network(images), dim=-1)
        again = from_pretrained(save_pretrained(network, tmp_path / "saved"))
        assert torch.equal(again(images), network(images))
    assert not torch.allclose(vectors, expected, atol=1e-2)
    assert Embedder(network, PICTURES).export(tmp_path / "network.pt2") < 1e-5


@pytest.mark.parametrize("other", ["linear", 6])
def test_a_head_of_another_kind_begins_anew(other, tmp_path, drawn):
    train(small(updates=2, validate_every=0, head="scale", root=drawn), tmp_path / "first")
    config = small(init=str(tmp_path / "first"), head=other, updates=1, validate_every=0, learning_rate=1e-30, root=drawn)
    train(config, tmp_path / "second")
    assert from_pretrained(tmp_path / "second").description["head"] == other
