"""The interface: names, presets, options, and what a user's own system must have."""

import dataclasses
import subprocess
import sys

import pytest
import torch
from methods.made import made
from torch import nn

from rankshot.fewshot import Classification, Retrieval
from rankshot.methods import SYSTEMS, Method, options_of, register, settings_for, system
from rankshot.methods.method import BORROWED
from rankshot.training import TrainConfig, train
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
    assert {"omniglot", "mini-imagenet"} <= set(system(name).presets)
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
            with pytest.raises(ValueError, match=f"has no {setting}: that is for ('map-dlm'|'smooth-ap').*, got"):
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
    with pytest.raises(ValueError, match=r"there is a method 'nca' already, in .*nca\.py"):

        @register("nca")
        class NCA(Method):
            pass


def test_what_decides_which_network_is_best():
    tasks = [Classification(5, 1), Classification(20, 1), Classification(5, 5), Classification(20, 5), Retrieval(20)]
    assert made("map-dlm")[1].decisive(tasks) == 4
    assert made("prototypical")[1].decisive(tasks) == 1
    assert made("prototypical", options=("shot=2",))[1].decisive(tasks) == 3
    assert made("maml", options=("shot=5", "tasks=1"), batch_size=24)[1].decisive(tasks[:3]) == 2
    assert made("memory", options=("tasks=1",))[1].decisive(tasks) == 1


def test_a_run_can_be_loaded_without_anything_imported_before(tmp_path):
    config = TrainConfig(**{**settings_for("prototypical"), "filters": 4, "updates": 1, "validate_every": 0})
    train(config, tmp_path / "run")
    script = f"import rankshot; print(type(rankshot.from_pretrained({str(tmp_path / 'run')!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "PrototypicalNetwork\n"


def test_options_of_text_and_of_other_types():
    @dataclasses.dataclass(frozen=True)
    class Kinds:
        kind: str = "a"
        many: tuple = ()

    class WithKinds(Method):
        Options = Kinds

    assert options_of(WithKinds, ["kind=B"]) == Kinds(kind="B")
    with pytest.raises(TypeError, match=r"option many is a .*tuple.*: options are of type int, float, str, bool"):
        options_of(WithKinds, ["many=1"])


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
