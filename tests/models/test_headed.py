"""A head on a network: what it computes, what is saved, and that it can learn alone."""

import re

import pytest
import torch
from small import small

from rankshot import Embedder
from rankshot.data import load
from rankshot.fewshot.evaluation import embed_all
from rankshot.models import from_pretrained, save_pretrained
from rankshot.models.export import export
from rankshot.models.headed import CENTRE, POWER, SHRINKAGE, Centred, head_for, headed_in
from rankshot.models.network import build, trunk_of
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import train
from rankshot.training.fitting import config_for
from rankshot.training.run_folder import read_metrics
from rankshot.training.validation import Validator

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


@pytest.mark.slow
def test_with_its_network_frozen_it_learns_alone(tmp_path, data_root):
    config = small(updates=3, validate_every=0, head=6, frozen=("all",), root=data_root)
    train(config.changed(updates=1, learning_rate=1e-30), tmp_path / "before")
    train(config, tmp_path / "after")
    before, after = (read_tensors(tmp_path / name / "model.safetensors") for name in ("before", "after"))
    assert {name for name in after if not torch.equal(before[name], after[name])} == {"head.weight"}


@pytest.mark.slow
def test_a_run_goes_on_with_the_head_of_another(tmp_path, data_root):
    train(small(updates=2, validate_every=0, head=6, root=data_root), tmp_path / "first")
    config = config_for(init=str(tmp_path / "first"), updates=1, validate_every=0, learning_rate=1e-30, root=str(data_root))
    assert config.network.head == 6
    train(config, tmp_path / "second")
    first, second = (headed_in(from_pretrained(tmp_path / name)).head.weight for name in ("first", "second"))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("head", [0, -3, 2**15])
def test_no_head(head):
    with pytest.raises(ValueError, match="head must be a whole number from 1 to 16,384"):
        small(head=head)


def test_everything_frozen_and_no_head(tmp_path, data_root):
    with pytest.raises(
        ValueError, match=r"nothing to learn: all weights are frozen, and there is no head that learns \(--head 128\)"
    ):
        train(small(updates=2, validate_every=0, frozen=("all",), root=data_root), tmp_path / "run")
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
def test_a_head_of_another_kind_begins_anew(other, tmp_path, data_root):
    train(small(updates=2, validate_every=0, head="scale", root=data_root), tmp_path / "first")
    config = small(
        init=str(tmp_path / "first"), head=other, updates=1, validate_every=0, learning_rate=1e-30, root=data_root
    )
    train(config, tmp_path / "second")
    assert from_pretrained(tmp_path / "second").description["head"] == other


def test_whitening_by_its_definition():
    """Slowly: the covariance within classes, shrunk, times the square of the map is a multiple of the identity."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(7).repeat_interleave(30)[torch.randperm(210, generator=random)]
    stretched = torch.randn(210, 6, generator=random) * torch.tensor([5.0, 3.0, 1.0, 1.0, 0.5, 0.1])
    embeddings = 3 + torch.randn(7, 6, generator=random)[labels] + stretched
    head = head_for(6, "whitened")
    assert torch.equal(head(embeddings), head_for(6, "linear")(embeddings))  # before it is fitted
    assert not head.is_fitted
    head.fit(embeddings, labels)
    assert head.is_fitted
    vectors = torch.nn.functional.normalize(embeddings).double()
    within = torch.zeros(6, 6, dtype=torch.float64)
    for name in range(7):
        of_class = vectors[labels == name]
        for vector in of_class:
            within += torch.outer(vector - of_class.mean(0), vector - of_class.mean(0)) / 210
    within += SHRINKAGE * within.trace() / 6 * torch.eye(6)
    weight = head.weight.detach().double()
    whitened = weight @ within @ weight.T
    torch.testing.assert_close(whitened, whitened[0, 0] * torch.eye(6, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(head.offset.double(), vectors.mean(0), atol=1e-7, rtol=0, check_dtype=False)
    by_views = head_for(6, "whitened")
    order = labels.argsort(stable=True)  # thirty of each class: ten images of three views
    by_views.fit(embeddings[order].view(70, 3, 6), labels[order][::3])
    torch.testing.assert_close(by_views.weight, head.weight)


def test_whitening_one_image_a_class_moves_the_origin_alone():
    head = head_for(3, "whitened")
    head.fit(torch.rand(4, 3), torch.arange(4))
    assert torch.equal(head.weight, torch.eye(3))
    assert head.offset.any()


@pytest.mark.slow
def test_a_whitened_head_may_be_the_best_as_it_was_fitted(tmp_path, data_root):
    """What it begins with is measured twice: as the weights come, and fitted. Updates that destroy it change nothing."""
    config = small(updates=2, validate_every=2, head="whitened", frozen=("all",), root=data_root, validation_ways=(3,))
    train(config.changed(learning_rate=1e6, init="conv4-omniglot", filters=64), tmp_path / "run")
    validated = [line for line in read_metrics(tmp_path / "run") if "validation" in line]
    assert [line["update"] for line in validated] == [0, 0, 2]
    assert validated[0]["validation"] != validated[1]["validation"]
    scores = [line["validation"]["retrieval 3-way"]["mean"] for line in validated]
    head = headed_in(from_pretrained(tmp_path / "run")).head
    assert head.is_fitted == (scores[1] > scores[0])


@pytest.mark.slow
def test_a_whitened_head_begins_fitted_and_goes_on_as_it_was(tmp_path, data_root):
    """One that learns nothing more is what whitening makes of it; stopped and resumed, a run ends with the same weights."""
    config = small(updates=4, validate_every=0, head="whitened", frozen=("all",), root=data_root)
    with pytest.raises(ValueError, match=r"a whitened head is fitted to .*: add --frozen all"):
        train(config.changed(frozen=()), tmp_path / "none")
    train(config.changed(updates=1, learning_rate=1e-30), tmp_path / "still")
    still = headed_in(from_pretrained(tmp_path / "still"))
    assert still.head.is_fitted
    images = load(config.data.name, "train", data_root)
    again = head_for(still.dimensions, "whitened")
    again.fit(embed_all(still.network, images), torch.from_numpy(images.labels))
    torch.testing.assert_close(still.head.weight, again.weight, atol=1e-4, rtol=1e-4)
    train(config, tmp_path / "whole")
    train(config.changed(updates=2, schedule="constant"), tmp_path / "halves")
    train(config.changed(schedule="constant"), tmp_path / "at-once")
    train(config.changed(schedule="constant"), tmp_path / "halves", resume=True)
    first, second = (read_tensors(tmp_path / name / "model.safetensors") for name in ("at-once", "halves"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    further = config_for(
        init=str(tmp_path / "whole"), updates=1, validate_every=0, learning_rate=1e-30, root=str(data_root)
    )
    assert (further.network.head, further.network.frozen) == ("whitened", ("statistics",))
    # Its head is fitted: all weights may learn now. The statistics of batch norm are those that its network came with.
    train(further, tmp_path / "further")
    weights = [headed_in(from_pretrained(tmp_path / name)).head.weight for name in ("whole", "further")]
    torch.testing.assert_close(*weights)


def test_a_centred_head_takes_a_part_of_the_mean_away():
    network, images = headed(head="centred"), torch.rand(6, 1, 28, 28)
    trunk, head = trunk_of(network), headed_in(network).head
    assert network.embedding_dim == trunk(images).shape[1]
    mean = torch.rand(network.embedding_dim) / 10
    head.norm.running_mean.copy_(mean)
    with torch.no_grad():
        powers = torch.nn.functional.normalize(trunk(images) ** POWER, dim=1)  # a ReLU leaves nothing below 0
        torch.testing.assert_close(network(images), powers - CENTRE * mean, atol=1e-6, rtol=1e-5)
    negative = torch.randn(4, 3)
    signed = negative.sign() * negative.abs() ** POWER
    torch.testing.assert_close(Centred.powers(negative), torch.nn.functional.normalize(signed, dim=1))


def test_a_centred_head_follows_the_mean_and_changes_nothing_in_training():
    head = Centred(3).train()
    embeddings = torch.rand(5, 3, requires_grad=True)
    for _ in range(200):
        assert head(embeddings) is embeddings
    assert head(embeddings[:1]).shape == (1, 3)  # one image alone is not followed
    torch.testing.assert_close(head.norm.running_mean, Centred.powers(embeddings).mean(0).detach())
    assert list(head.parameters()) == []
    zero = torch.zeros(2, 3, requires_grad=True)
    head.eval()(zero).sum().backward()
    assert torch.equal(zero.grad, torch.zeros(2, 3))  # where the power itself has no slope


@pytest.mark.slow
def test_a_centred_head_is_trained_saved_resumed_and_exported(tmp_path, data_root):
    config = small(updates=8, checkpoint_every=4, validate_every=0, head="centred", root=data_root)
    train(config, tmp_path / "whole")
    train(config.changed(updates=4), tmp_path / "parts")
    train(config, tmp_path / "parts", resume=True)
    whole, parts = (read_tensors(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    name = "head.norm.running_mean"
    assert all(torch.equal(whole[each], parts[each]) for each in whole)
    assert whole[name].norm() > 0.1
    network = from_pretrained(tmp_path / "whole").eval()
    assert export(network, (1, 28, 28), tmp_path / "network.onnx", {}) < 1e-4  # how far its answers are from ours
    assert torch.equal(headed_in(network).head.norm.running_mean, whole[name])


@pytest.mark.parametrize("method", ["prototypical", "matching-fce", "baseline++", "memory"])
def test_a_centred_head_is_refused_where_embeddings_are_compared_as_they_are(method, data_root, tmp_path):
    config = small(head="centred", method=method, root=data_root)
    with pytest.raises(ValueError, match=rf"{re.escape(method)} has learned to compare them as they are: leave out head"):
        train(config, tmp_path / "run")


@pytest.mark.parametrize("method", ["maml", "meta-lstm"])
@pytest.mark.parametrize("head", [8, "linear"])
def test_who_learns_every_task_anew_has_no_head(method, head, data_root, tmp_path):
    with pytest.raises(ValueError, match="learns every task anew has a classifier on top of its network: leave out head"):
        train(small(head=head, method=method, batch_size=32, root=data_root), tmp_path / "run")


def test_a_centred_head_has_a_mean_before_it_is_first_measured(tmp_path, data_root, monkeypatch):
    """Or weights to begin with would be measured by a head that takes nothing away, and perhaps stay the best so."""
    train(small(updates=1, validate_every=0, root=data_root), tmp_path / "first")
    config = small(
        updates=1, validate_every=1, learning_rate=1e-30, init=str(tmp_path / "first"), head="centred", root=data_root
    )
    happened, means, fit, measure = [], [], Centred.fit, Validator.measure

    def fitted(head, embeddings):
        fit(head, embeddings)
        happened.append("fitted")
        means.append(head.mean.clone())

    def measured(validator, weights=None):
        happened.append("measured")
        return measure(validator, weights)

    monkeypatch.setattr(Centred, "fit", fitted)
    monkeypatch.setattr(Validator, "measure", measured)
    train(config, tmp_path / "second")
    assert happened == ["fitted", "measured", "measured"]
    network, images = from_pretrained(tmp_path / "first"), load("glyphs", "train", data_root)
    torch.testing.assert_close(means[0], Centred.powers(embed_all(network, images)).mean(0), atol=1e-4, rtol=1e-3)


def test_a_centred_head_has_nothing_to_learn_alone():
    with pytest.raises(ValueError, match="a centred head learns nothing"):
        small(head="centred", frozen=("all",))
