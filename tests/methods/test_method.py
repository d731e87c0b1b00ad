"""The interface: names, presets, options, and what a user's own system must have."""

import dataclasses
import subprocess
import sys

import pytest
import torch
from methods.made import made
from torch import nn

from rankshot import losses
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
            told = f"has no {setting}: that is for ('map-dlm'|'smooth-ap').*, got"
            if hasattr(system(name).Options, setting):
                told = f"{setting} is an option of {name}'s own: --options {setting}={value}"
            with pytest.raises(ValueError, match=told):
                made(name, batch_size=120, **{setting: value})


def test_options():
    assert options_of(system("maml"), ["steps=3", "rate=0.05", "first_order=True"]) == dataclasses.replace(
        system("maml").Options(), steps=3, rate=0.05, first_order=True
    )
    for told, complaint in (
        ("shots=3", r"prototypical has no option 'shots=3': there is shot=1"),
        ("shot", "option shot has no value: write shot=VALUE"),
        ("shot=many", r"option shot must be a whole number, got 'many'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            options_of(system("prototypical"), [told])
    with pytest.raises(ValueError, match="map-dlm has no option 'shot=1': there is none"):
        options_of(system("map-dlm"), ["shot=1"])
    with pytest.raises(ValueError, match=r"memory has no option 'centred=true': there is tasks=4, .* shared=true"):
        options_of(system("memory"), ["centred=true"])
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
    script = f"from rankshot import models; print(type(models.from_pretrained({str(tmp_path / 'run')!r})).__name__)"
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
    with pytest.raises(ValueError, match=r"option many is a .*tuple.*: options are of type int, float, str, bool"):
        options_of(WithKinds, ["many=1"])

    @dataclasses.dataclass(frozen=True)
    class Odd:
        needed: int
        made: list = dataclasses.field(default_factory=list)

    class WithOdd(Method):
        Options = Odd

    with pytest.raises(ValueError, match="WithOdd has no option 'other=1': there is needed, made"):
        options_of(WithOdd, ["other=1"])
    with pytest.raises(ValueError, match=r"the options of WithOdd: .*missing 1 required positional argument: 'needed'"):
        options_of(WithOdd, [])


OF_LOSSES = [
    ("map-dlm", {"alpha": 2.0, "epsilon": 0.3}, losses.RankingLoss("ap", "dlm", 0.3, 2.0)),
    ("map-ssvm", {"alpha": 2.0}, losses.RankingLoss("ap", "ssvm", alpha=2.0)),
    ("smooth-ap", {"temperature": 0.3}, losses.SmoothAPLoss(0.3)),
    ("nca", {"options": ("temperature=0.3",)}, losses.NCALoss(0.3)),
    ("lmnn", {"options": ("neighbours=2", "margin=0.7", "push=0.2")}, losses.LMNNLoss(2, 0.7, 0.2)),
    ("triplet", {"options": ("margin=0.7",)}, losses.TripletLoss(0.7)),
    ("fast-ap", {"options": ("bins=4",)}, losses.FastAPLoss(4)),
    ("supcon", {"options": ("temperature=0.3",)}, losses.SupConLoss(0.3)),
]


@pytest.mark.parametrize(("name", "settings", "loss"), OF_LOSSES, ids=[name for name, *_ in OF_LOSSES])
def test_a_system_has_its_own_loss_with_its_options(name, settings, loss):
    """Each loss has a test of its mathematics; here that it is the one, and no other gives the same."""
    embeddings, labels = torch.randn(24, 6, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 4
    found = made(name, **settings)[1].loss(embeddings, labels)
    torch.testing.assert_close(found, loss(embeddings, labels))
    assert not torch.isclose(found, made(name)[1].loss(embeddings, labels))
    assert sum(bool(torch.isclose(found, other(embeddings, labels))) for *_, other in OF_LOSSES) == 1


# What the papers of the systems have, where they tell: the numbers themselves, so that none changes by accident.
PAPERS = {
    ("map-dlm", "omniglot"): {"batch_classes": 16, "batch_size": 128, "updates": 18_000, "learning_rate": 1e-3},
    ("map-dlm", "mini-imagenet"): {"batch_classes": 8, "batch_size": 128, "updates": 22_000, "learning_rate": 1e-3},
    ("siamese", "omniglot"): {"batch_classes": 16, "batch_size": 128, "updates": 18_000, "learning_rate": 0.1},
    ("siamese", "mini-imagenet"): {"batch_classes": 8, "batch_size": 128, "updates": 24_000, "learning_rate": 0.01},
    ("matching", "omniglot"): {"batch_classes": 20, "batch_size": 200, "shot": 1, "scale": 30},
    ("matching-fce", "mini-imagenet-5-shot"): {"batch_classes": 5, "batch_size": 100, "shot": 5, "scale": 30, "reads": 5},
    ("prototypical", "omniglot"): {"batch_classes": 60, "batch_size": 360, "shot": 1, "decay": 0.5, "decay_every": 2000},
    ("prototypical", "mini-imagenet"): {"batch_classes": 30, "batch_size": 480, "learning_rate": 1e-3, "scale": 1 / 1600},
    ("prototypical", "mini-imagenet-5-shot"): {"batch_classes": 20, "batch_size": 400, "shot": 5, "decay_every": 2000},
    ("maml", "omniglot"): {"batch_classes": 5, "tasks": 32, "steps": 1, "rate": 0.4, "test_steps": 3, "filters": 64},
    ("maml", "omniglot-20-way"): {"batch_classes": 20, "tasks": 16, "steps": 5, "rate": 0.1, "test_steps": 5},
    ("maml", "mini-imagenet"): {"tasks": 4, "steps": 5, "rate": 0.01, "test_steps": 10, "filters": 32, "updates": 60_000},
    ("maml", "mini-imagenet-5-shot"): {"tasks": 2, "shot": 5, "steps": 5, "rate": 0.01, "test_steps": 10, "filters": 32},
    ("meta-lstm", "mini-imagenet"): {"batch_size": 80, "steps": 12, "filters": 32, "updates": 75_000},
    ("meta-lstm", "mini-imagenet-5-shot"): {"batch_size": 100, "shot": 5, "steps": 5, "filters": 32, "updates": 50_000},
    ("memory", "omniglot"): {"batch_classes": 5, "tasks": 16, "margin": 0.1, "batch_size": 480, "shared": True},
    ("memory", "mini-imagenet"): {"batch_classes": 5, "tasks": 16, "margin": 0.1, "batch_size": 480, "shared": False},
    ("triplet", "omniglot"): {"margin": 0.2},
}


@pytest.mark.parametrize(("name", "preset"), PAPERS, ids=" ".join)
def test_presets_are_those_of_the_papers(name, preset):
    config = TrainConfig(**settings_for(name, preset))
    options = dataclasses.asdict(options_of(system(name), config.options))
    found = {**config.to_json(), **options, "learning_rate": config.first_learning_rate}
    expected = PAPERS[name, preset]
    assert {each: found[each] for each in expected} == expected
    assert system("meta-lstm").clip == 0.25


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
