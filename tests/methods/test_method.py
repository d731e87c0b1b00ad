"""The interface: names, presets, options, and what a user's own system must have."""

import subprocess
import sys

import pytest
import torch
from methods.made import made
from torch import nn

from rankshot import losses
from rankshot.fewshot import Classification, Retrieval
from rankshot.methods import METHODS, Context, Method, make_method, register, settings_for
from rankshot.methods.method import presets_of
from rankshot.registry import help_of
from rankshot.training import TrainConfig, train

NAMES = (
    "map-dlm map-ssvm siamese nearest matching matching-fce prototypical maml meta-lstm memory arc nca lmnn triplet "
    "smooth-ap fast-ap supcon baseline++"
)


def test_names():
    assert sorted(METHODS) == sorted(NAMES.split())
    with pytest.raises(ValueError, match="unknown method 'protonet': did you mean 'prototypical'"):
        METHODS["protonet"]
    assert all(part.summary for _, part in METHODS.items())


@pytest.mark.parametrize("name", NAMES.split())
def test_defaults_and_presets_can_be_made(name):
    for preset in (None, *presets_of(name)):
        config = TrainConfig.of(**settings_for(name, preset))
        make_method(config.method, Context(64, 100, config.batch.classes, config.batch.size))
    assert {"omniglot", "mini-imagenet"} <= set(presets_of(name))
    with pytest.raises(ValueError, match=f"{name.replace('+', '.')} has no preset 'cub': there is"):
        settings_for(name, "cub")
    if name != "maml":
        with pytest.raises(ValueError, match=r"has no preset 'omniglot-20-way': .*; it is one of maml"):
            settings_for(name, "omniglot-20-way")


def test_names_that_are_none():
    with pytest.raises(TypeError, match=r"preset must be a name, such as 'paper', got \{'alpha': 1\}: TrainConfig\.of"):
        settings_for("map-dlm", {"alpha": 1})
    with pytest.raises(TypeError, match=r"a method is chosen by its name, which is a text, got \{'alpha': 1\}"):
        settings_for({"alpha": 1})


@pytest.mark.parametrize("name", NAMES.split())
def test_every_setting_is_explained(name):
    part = METHODS[name]
    told = help_of(part.make)
    assert part.types.keys() <= told.keys()
    assert all(len(told[setting]) > 5 for setting in part.types)


@pytest.mark.parametrize("name", NAMES.split())
def test_settings_of_other_methods(name):
    for setting, value in (
        ("alpha", 3.0),
        ("temperature", 0.5),
        ("metric", "ndcg"),
        ("coarse_weight", 0.2),
        ("slots", 200),
    ):
        if setting in METHODS[name].types:
            made(name, batch_size=120, **{setting: value})
        else:
            with pytest.raises(ValueError, match=f"has no setting '{setting}': that is a setting of '"):
                made(name, batch_size=120, **{setting: value})


def test_settings_are_typed():
    assert METHODS.choose("maml", {"steps": 3, "rate": 1}).settings == {
        **METHODS["maml"].defaults, "steps": 3, "rate": 1.0,
    }  # fmt: skip
    for name, value, complaint in (
        ("shots", 3, "method 'prototypical' has no setting 'shots': did you mean 'shot'?"),
        ("shot", "many", "method prototypical: shot must be a whole number, got 'many'"),
        ("scale", True, "method prototypical: scale must be a number, got True"),
    ):
        with pytest.raises(ValueError) as caught:
            METHODS.choose("prototypical", {name: value})
        assert str(caught.value) == complaint
    with pytest.raises(ValueError, match="memory: shared must be true or false, got 'perhaps'"):
        METHODS.choose("memory", {"shared": "perhaps"})
    with pytest.raises(ValueError, match="nearest' has no setting 'zzz': there is none"):
        METHODS.choose("nearest", {"zzz": 1})


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r"there is a method 'nca' already, in .*nca_loss\.py"):

        @register("nca")
        class NCA(Method):
            pass


def test_what_decides_which_network_is_best():
    tasks = [Classification(5, 1), Classification(20, 1), Classification(5, 5), Classification(20, 5), Retrieval(20)]
    assert made("map-dlm")[1].decisive(tasks) == 4
    assert made("prototypical")[1].decisive(tasks) == 1
    assert made("prototypical", shot=2)[1].decisive(tasks) == 3
    assert made("maml", shot=5, tasks=1, batch_size=24)[1].decisive(tasks[:3]) == 2
    assert made("memory", tasks=1)[1].decisive(tasks) == 1


def test_a_run_can_be_loaded_without_anything_imported_before(tmp_path):
    few = {"filters": 4, "updates": 1, "validate_every": 0, "batch_classes": 5, "batch_size": 30}
    config = TrainConfig.of(**{**settings_for("prototypical"), **few})
    train(config, tmp_path / "run")
    script = f"from rankshot import models; print(type(models.from_pretrained({str(tmp_path / 'run')!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "PrototypicalNetwork\n"


OF_LOSSES = [
    ("map-dlm", {"alpha": 2.0, "epsilon": 0.3}, losses.RankingLoss("ap", "dlm", 0.3, 2.0)),
    ("map-ssvm", {"alpha": 3.0}, losses.RankingLoss("ap", "ssvm", alpha=3.0)),
    ("smooth-ap", {"temperature": 0.3}, losses.SmoothAPLoss(0.3)),
    ("nca", {"temperature": 0.3}, losses.NCALoss(0.3)),
    ("lmnn", {"neighbours": 2, "margin": 0.7, "push": 0.2}, losses.LMNNLoss(2, 0.7, 0.2)),
    ("triplet", {"margin": 0.7}, losses.TripletLoss(0.7)),
    ("fast-ap", {"bins": 4}, losses.FastAPLoss(4)),
    ("supcon", {"temperature": 0.3}, losses.SupConLoss(0.3)),
]


@pytest.mark.parametrize(("name", "settings", "loss"), OF_LOSSES, ids=[name for name, *_ in OF_LOSSES])
def test_a_system_has_its_own_loss_with_its_options(name, settings, loss):
    """Each loss has a test of its mathematics; here that it is the one, and no other gives the same."""
    embeddings, labels = torch.randn(24, 6, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 4
    found = made(name, **settings)[1].loss(embeddings, labels)
    torch.testing.assert_close(found, loss(embeddings, labels))
    assert not torch.isclose(found, made(name)[1].loss(embeddings, labels))
    assert sum(bool(torch.isclose(found, other(embeddings, labels))) for *_, other in OF_LOSSES) == 1


# What the papers of the systems have, where they tell, and the authors' code of MAML: the numbers themselves, so that none
# changes by accident.
STRIDED = {"network": "conv4-strided", "adapt_norm": False, "updates": 60_000, "filters": 64}
PAPERS = {
    ("map-dlm", "omniglot"): {"batch_classes": 16, "batch_size": 128, "updates": 18_000, "learning_rate": 1e-3},
    ("map-dlm", "mini-imagenet"): {"batch_classes": 8, "batch_size": 128, "updates": 22_000, "learning_rate": 1e-3},
    ("siamese", "omniglot"): {"batch_classes": 16, "batch_size": 128, "updates": 18_000, "learning_rate": 0.1},
    ("siamese", "mini-imagenet"): {"batch_classes": 8, "batch_size": 128, "updates": 24_000, "learning_rate": 0.01},
    ("matching", "omniglot"): {"batch_classes": 20, "batch_size": 200, "shot": 1, "scale": 30},
    ("matching-fce", "mini-imagenet-5-shot"): {"batch_classes": 5, "batch_size": 100, "shot": 5, "scale": 30, "reads": 5},
    ("prototypical", "omniglot"): {"batch_classes": 60, "batch_size": 360, "shot": 1, "decay": 0.5, "decay_every": 2000},
    ("prototypical", "mini-imagenet"): {"batch_classes": 30, "batch_size": 480, "learning_rate": 1e-3, "scale": 0.01},
    ("prototypical", "mini-imagenet-5-shot"): {"batch_classes": 20, "batch_size": 400, "shot": 5, "decay_every": 2000},
    ("maml", "omniglot"): {"batch_classes": 5, "tasks": 32, "steps": 1, "rate": 2.0, "test_steps": 3, **STRIDED},
    ("maml", "omniglot-20-way"): {"batch_classes": 20, "tasks": 16, "steps": 5, "rate": 2.0, "test_steps": 5, **STRIDED},
    ("maml", "mini-imagenet"): {"tasks": 4, "steps": 5, "rate": 0.05, "test_steps": 10, "filters": 32, "adapt_norm": False},
    ("maml", "mini-imagenet-5-shot"): {"tasks": 2, "shot": 5, "steps": 5, "rate": 0.05, "updates": 60_000, "filters": 32},
    ("meta-lstm", "mini-imagenet"): {"batch_size": 80, "steps": 12, "filters": 32, "updates": 75_000},
    ("meta-lstm", "mini-imagenet-5-shot"): {"batch_size": 100, "shot": 5, "steps": 5, "filters": 32, "updates": 50_000},
    ("memory", "omniglot"): {"batch_classes": 5, "tasks": 16, "margin": 0.1, "batch_size": 480, "shared": True},
    ("memory", "mini-imagenet"): {"batch_classes": 5, "tasks": 16, "margin": 0.1, "batch_size": 480, "shared": False},
    ("arc", "omniglot"): {"window": 4, "glimpses": 8, "hidden": 256, "batch_size": 64, "learning_rate": 1e-4, "blocks": 2},
    ("triplet", "omniglot"): {"margin": 0.2},
}


@pytest.mark.parametrize(("name", "preset"), PAPERS, ids=" ".join)
def test_presets_have_the_numbers_of_the_papers(name, preset):
    config = TrainConfig.of(**settings_for(name, preset))
    found = {**config.flat(), "learning_rate": config.first_learning_rate}
    expected = PAPERS[name, preset]
    assert {each: found[each] for each in expected} == expected
    assert (config.optimiser.clip == 0.25) == (name == "meta-lstm")


@pytest.mark.parametrize("method", ["map-dlm", "map-ssvm"])
def test_the_preset_paper_is_the_paper_s_settings_for_the_data(method):
    objective = {"alpha": 10.0, "epsilon": 1.0, "smoothing": 0.0, "coarse_weight": 0.0, "learning_rate": 0.001}
    for data, schedule, classes, updates in (
        ("omniglot", "constant", 16, 18_000),
        ("mini-imagenet", "step", 8, 22_000),
        ("cub", "step", 8, 22_000),
        ("glyphs", "constant", 16, 800),
        ("photos/", "step", 8, 800),
    ):
        found = TrainConfig.of(**settings_for(method, "paper", data)).flat()
        assert objective.items() <= found.items()
        assert (found["data"], found["schedule"], found["batch_classes"]) == (data, schedule, classes)
        assert (found["updates"], found["rotations"]) == (updates, data == "omniglot")
    assert settings_for(method, "paper", "omniglot") == settings_for(method, "omniglot")
    assert settings_for(method)["schedule"] == "cosine"  # without a preset, the best that is known


def test_the_least_that_a_system_is():
    class Centres(Method):
        def loss(self, embeddings, labels):
            return sum(embeddings[labels == each].var(0).sum() for each in labels.unique())

    method, model = Centres(Context(256, 10, 16, 128)), nn.Flatten()
    labels = torch.arange(12) % 3
    loss, embeddings = method.learn(model, torch.rand(12, 1, 16, 16), labels)
    assert embeddings.shape == (12, 256)
    assert loss > 0
    assert len(method.sampler(torch.arange(400) // 20, seed=0).draw(0)) == 128
