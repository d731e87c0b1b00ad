"""Optimisers do what torch's own do, to the weights that they are for."""

import pytest
import torch
from methods.made import made
from small import small
from torch import nn, optim

from rankshot.models.network import trunk_of
from rankshot.tensors import read_tensors
from rankshot.training import train
from rankshot.training.optimiser import freeze, make_optimiser, set_learning_rate
from rankshot.training.sections import OptimiserConfig

CPU = torch.device("cpu")


def stepped(optimiser, model, loss, steps=5):
    for number in range(steps):
        optimiser.zero_grad()
        images = torch.rand(12, 1, 16, 16, generator=torch.Generator().manual_seed(number))
        loss(model(images), torch.arange(12) % 3).backward()
        optimiser.step()
    return torch.cat([each.detach().flatten() for each in model.parameters()])


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({}, lambda weights: optim.Adam(weights, lr=0.01)),
        ({"name": "adamw", "weight_decay": 0.5}, lambda weights: optim.AdamW(grouped(weights, 0.5), lr=0.01)),
        ({"weight_decay": 0.5}, lambda weights: optim.Adam(grouped(weights, 0.5), lr=0.01)),
        ({"name": "sgd"}, lambda weights: optim.SGD(weights, lr=0.01)),
        ({"name": "sgd", "momentum": 0.9}, lambda weights: optim.SGD(weights, lr=0.01, momentum=0.9)),
        (
            {"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            lambda weights: optim.SGD(grouped(weights, 0.1), lr=0.01, momentum=0.9, nesterov=True),
        ),
    ],
    ids=["adam", "adamw", "adam with decay", "sgd", "momentum", "nesterov"],
)
def test_against_torch_s_own(settings, plain):
    found = []
    for make in (
        lambda m, k: make_optimiser(OptimiserConfig(**settings), m, k, 0.01, CPU),
        lambda m, _: plain(m.parameters()),
    ):
        torch.manual_seed(0)
        model, method = made("nca")
        before = torch.cat([each.detach().flatten() for each in model.parameters()])
        found.append(stepped(make(model, method), model, method.loss))
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(found[0], before)


def grouped(weights, decay):
    weights = list(weights)
    return [
        {"params": [each for each in weights if each.dim() > 1], "weight_decay": decay},
        {"params": [each for each in weights if each.dim() <= 1], "weight_decay": 0.0},
    ]


def test_a_trunk_that_learns_slower():
    """The embedding network by a tenth of the rate of the layers that a method has beside and around it."""
    model, method = made("matching-fce")
    optimiser = make_optimiser(OptimiserConfig(trunk_rate=0.1), model, method, 1.0, CPU)
    rates = {id(each): group["lr"] for group in optimiser.param_groups for each in group["params"]}
    trunk = {id(each) for each in trunk_of(model).parameters()}
    assert {rates[each] for each in trunk} == {0.1}
    assert {rate for each, rate in rates.items() if each not in trunk} == {1.0}
    set_learning_rate(optimiser, 0.5)
    assert sorted({group["lr"] for group in optimiser.param_groups}) == [0.05, 0.5]


def test_first_layers_that_learn_slower():
    """From the first layer's rate to the last one's by equal factors; layers of a method's own learn at the whole rate."""
    model, method = made("matching-fce")
    optimiser = make_optimiser(OptimiserConfig(first_layer_rate=0.01, trunk_rate=0.5), model, method, 1.0, CPU)
    rates = {id(each): group["lr"] for group in optimiser.param_groups for each in group["params"]}
    trunk = trunk_of(model)
    of_trunk = [rates[id(each)] for each in trunk.parameters()]
    assert of_trunk[0] == pytest.approx(0.5 * 0.01)
    assert of_trunk == sorted(of_trunk)
    assert of_trunk[-1] == pytest.approx(0.5)
    within = {id(each) for each in trunk.parameters()}
    assert {rate for each, rate in rates.items() if each not in within} == {1.0}
    alone = make_optimiser(OptimiserConfig(), model, method, 1.0, CPU)
    assert {group["lr"] for group in alone.param_groups} == {1.0}
    with pytest.raises(ValueError, match="trunk_rate is for methods with layers of their own"):
        make_optimiser(OptimiserConfig(trunk_rate=0.1, first_layer_rate=0.1), *made("nca"), 0.01, CPU)
    freeze(model, ["all"])
    with pytest.raises(ValueError, match="first_layer_rate is for a network that learns"):
        make_optimiser(OptimiserConfig(first_layer_rate=0.1), model, method, 1.0, CPU)


def test_frozen_statistics():
    """All weights learn; what batch norm knows of its inputs stays, and an image is embedded alike in any batch."""
    model, _ = made("nca")
    freeze(model.train(), ["statistics"])
    assert all(each.requires_grad for each in model.parameters())
    before = {name: each.clone() for name, each in model.named_buffers()}
    assert before
    images = torch.rand(6, 1, 16, 16)
    torch.testing.assert_close(model(images)[:2], model(images[:2]))
    assert all(torch.equal(each, before[name]) for name, each in model.named_buffers())


def test_frozen_statistics_of_weights_that_have_learned_nothing(tmp_path):
    with pytest.raises(ValueError, match="frozen statistics are those of a network that has learned before: add --init"):
        train(small(frozen=("statistics",)), tmp_path / "run")
    train(small(updates=2), tmp_path / "first")
    config = small(updates=4, frozen=("statistics",), init=str(tmp_path / "first"), validate_every=2)
    train(config, tmp_path / "second")
    first, second = (read_tensors(tmp_path / name / "model.safetensors") for name in ("first", "second"))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]) == ("running" in name or "tracked" in name), name


def test_frozen_layers():
    model, method = made("prototypical")
    freeze(model.train(), ["0", "1"])
    optimiser = make_optimiser(OptimiserConfig(), model, method, 0.01, CPU)
    learns = {id(each) for group in optimiser.param_groups for each in group["params"]}
    names = {name for name, each in model.named_parameters() if id(each) in learns}
    assert names == {name for name, _ in model.named_parameters() if name.split(".")[1] in ("2", "3")}
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model(torch.rand(6, 1, 16, 16))
    changed = {name.split(".")[1] for name, each in model.state_dict().items() if not torch.equal(each, before[name])}
    assert changed == {"2", "3"}  # the running statistics of the others alone
    there = "there is '0', '1', '2', '3', '4', and 'all' and 'statistics'"
    with pytest.raises(ValueError, match=f"frozen: the network has no layer '7': {there}"):
        freeze(model, ["7"])
    with pytest.raises(ValueError, match=r"no layer '0.nothing': there is '0.0', '0.1'"):
        freeze(model, ["0.nothing"])
    with pytest.raises(ValueError, match="frozen: a layer has a name, got an empty one"):
        freeze(model, [""])
    flat = nn.Flatten()
    with pytest.raises(ValueError, match="there is nothing to learn: the network has no weights"):
        make_optimiser(OptimiserConfig(), flat, nn.Identity(), 0.01, CPU)
    with pytest.raises(ValueError, match="trunk_rate is for methods with layers of their own"):
        make_optimiser(OptimiserConfig(trunk_rate=0.1), *made("nca"), 0.01, CPU)
    freeze(model, ["2", "3"])
    with pytest.raises(ValueError, match="there is nothing to learn: all weights are frozen"):
        make_optimiser(OptimiserConfig(), model, nn.Identity(), 0.01, CPU)


@pytest.mark.parametrize(
    "settings",
    [
        {"optimiser": "sgd", "momentum": 0.9, "learning_rate": 0.01, "warm_up": 8},
        {"method": "siamese", "optimiser": "adamw", "weight_decay": 0.1, "clip": 0.1, "frozen": ("0",), "trunk_rate": 0.5},
    ],
    ids=str,
)
def test_a_run_goes_on_to_the_same_weights(tmp_path, settings):
    config = small(validate_every=0, **settings)
    train(config, tmp_path / "whole")
    train(config.changed(updates=10), tmp_path / "parts")
    train(config, tmp_path / "parts", resume=True)
    whole, parts = (read_tensors(tmp_path / name / "state.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_a_frozen_block_stays_as_it_began(tmp_path):
    train(small(updates=1, validate_every=0, frozen=("0",)), tmp_path / "one")
    train(small(updates=9, validate_every=0, frozen=("0",)), tmp_path / "nine")
    one, nine = (read_tensors(tmp_path / name / "model.safetensors") for name in ("one", "nine"))
    assert {name.split(".")[0] for name in one if torch.equal(one[name], nine[name])} == {"0"}
    assert {name.split(".")[0] for name in one if not torch.equal(one[name], nine[name])} == {"1", "2", "3"}


def test_a_gradient_that_is_cut(tmp_path):
    """SGD takes a step of the rate times the length that the gradient is cut to."""
    settings = {"optimiser": "sgd", "learning_rate": 1.0, "clip": 1e-3, "validate_every": 0, "log_every": 1}
    train(small(updates=1, **settings), tmp_path / "one")
    train(small(updates=2, **settings), tmp_path / "two")
    one, two = (read_tensors(tmp_path / name / "state.safetensors") for name in ("one", "two"))
    moved = [
        two[name] - one[name] for name in one if name.startswith("model.") and "running" not in name and "num_" not in name
    ]
    assert torch.cat([each.flatten() for each in moved]).norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_norms_and_biases_of_any_shape_do_not_shrink():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.matrix = nn.Parameter(torch.ones(1, 4, 1, 1)), nn.Parameter(torch.ones(4, 3))

    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.LayerNorm([4, 7, 7]), Scaled(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(5, 1)
    )
    config = OptimiserConfig(name="adamw", weight_decay=0.1)
    optimiser = make_optimiser(config, model, nn.Module(), 0.1, torch.device("cpu"))
    shrinks = {id(weight) for group in optimiser.param_groups if group["weight_decay"] for weight in group["params"]}
    assert {name for name, weight in model.named_parameters() if id(weight) in shrinks} == {
        "0.weight", "2.matrix", "5.weight",
    }  # fmt: skip
