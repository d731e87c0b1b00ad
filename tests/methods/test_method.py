"""The interface: names, presets, options, and what a user's own system must have."""

import dataclasses

import pytest
import torch
from methods.made import made
from torch import nn

from rankshot.methods import SYSTEMS, Method, options_of, register, settings_for, system
from rankshot.methods.method import BORROWED
from rankshot.training import TrainConfig
from rankshot.training.loop import given_for

NAMES = (
    "map-dlm map-ssvm siamese nearest matching matching-fce prototypical maml meta-lstm memory nca lmnn triplet smooth-ap "
    "fast-ap supcon baseline++"
)


def test_names():
    assert list(SYSTEMS) == NAMES.split()
    with pytest.raises(ValueError, match="unknown method 'protonet': there is 'map-dlm', 'map-ssvm', 'siamese'"):
        system("protonet")


@pytest.mark.parametrize("name", SYSTEMS)
def test_defaults_and_presets_can_be_made(name):
    for preset in (None, *system(name).presets):
        config = TrainConfig(**settings_for(name, preset))
        config.check()
        system(name)(given_for(config, (1, 16, 16), 100))
    assert {"omniglot", "mini-imagenet"} <= set(system(name).presets) or name in ("nearest", "baseline++")
    with pytest.raises(ValueError, match=f"{name.replace('+', '.')} has no preset 'cub': there is"):
        settings_for(name, "cub")


def test_borrowed_settings_are_those_of_training():
    assert {name: getattr(TrainConfig(), name) for name in BORROWED} == BORROWED


@pytest.mark.parametrize("name", SYSTEMS)
def test_settings_that_a_system_has_no_use_for(name):
    for setting, value in (("alpha", 3.0), ("temperature", 0.5), ("metric", "ndcg"), ("wide", 0.2)):
        uses = setting in system(name).uses
        if uses:
            made(name, batch_size=120, **{setting: value})
        else:
            with pytest.raises(ValueError, match=f"has no {setting}: that is for 'map-dlm'|'smooth-ap', got"):
                made(name, batch_size=120, **{setting: value})


def test_options():
    assert options_of(system("maml"), ["steps=3", "rate=0.05", "first_order=True"]) == dataclasses.replace(
        system("maml").Options(), steps=3, rate=0.05, first_order=True
    )
    for told, complaint in (
        ("shots=3", r"Prototypical has no option 'shots=3': there is shot=1"),
        ("shot", r"has no option 'shot': there is shot=1"),
        ("shot=many", r"option shot must be a whole number, got 'many'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            options_of(system("prototypical"), [told])
    with pytest.raises(ValueError, match="MapDLM has no option 'shot=1': there is none"):
        options_of(system("map-dlm"), ["shot=1"])
    with pytest.raises(ValueError, match="option first_order must be true or false, got 'perhaps'"):
        options_of(system("maml"), ["first_order=perhaps"])
    with pytest.raises(ValueError, match="option rate must be a number, got 'fast'"):
        options_of(system("maml"), ["rate=fast"])


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r"there is a method 'nca' already: rankshot\.methods\.nca\.NCA"):

        @register("nca")
        class Other(Method):
            pass


def test_the_least_that_a_system_is():
    class Centres(Method):
        def loss(self, embeddings, labels):
            return sum(embeddings[labels == each].var(0).sum() for each in labels.unique())

    given = given_for(TrainConfig(filters=4), (1, 16, 16), 10)
    method, model = Centres(given), nn.Flatten()
    labels = torch.arange(12) % 3
    loss, embeddings = method.learn(model, torch.rand(12, 1, 16, 16), labels)
    assert embeddings.shape == (12, 256)
    assert loss > 0
    assert len(method.sampler(torch.arange(400) // 20, given, seed=0).draw(0)) == 128
