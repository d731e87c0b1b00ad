"""Every run of the studies can be made, is the paper's recipe but for one thing, and is asked the same."""

from dataclasses import replace

import pytest

from rankshot.methods import Context, make_method
from rankshot.models.shipped import shipped
from rankshot.reproduce.gap import QUESTIONS, VARIANTS, gap
from rankshot.reproduce.job import settings_of
from rankshot.reproduce.plan import BENCHMARKS, DECAY, RUNNING, rows
from rankshot.reproduce.published import COLUMNS
from rankshot.reproduce.studies import (
    DECAYS,
    METRICS,
    OBJECTIVES,
    SIGNS,
    STUDIED,
    STUDIES,
    decay_folder,
    decays,
    runs_of,
    studies,
    study_folder,
)


def test_every_run_can_be_made():
    on_mini_imagenet, on_omniglot = studies("mini-imagenet"), studies("omniglot")
    runs = [*on_mini_imagenet, *on_omniglot]
    assert len(on_mini_imagenet) == len(gap()) + 10 + 5 + 7 + 4 + (5 + 2) + 6 + 16
    assert len(on_omniglot) == 2 * (10 + 5 + 7) + 5
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        assert run.name.split("/")[0] == run.config.data.name
        make_method(run.config.method, Context(64, 64, run.config.batch.classes, run.config.batch.size))
        assert (run.questions.episodes, run.questions.seed) == (10_000, 100)
        assert run.config.run.seed == int(run.name.rsplit("/", 1)[1])
    assert {run.name.split("/")[2] for run in gap()} == set(VARIANTS)
    assert studies("cub") == []


CHANGED = {
    "objectives": {"metric", "epsilon", "alpha"},
    "signs": {"sign", "epsilon", "alpha"},
    "batches": {"batch_classes", "batch_similar", "batch_similar_by", "epsilon", "alpha"},
}


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("name", STUDIED)
def test_what_differs_from_the_paper(name, study):
    usual = settings_of(BENCHMARKS[name].config("paper", "map-dlm"))
    of_all = {"seed", *STUDIED[name].changes}
    changed = {
        run.name: {setting for setting, value in settings_of(run.config).items() if value != usual[setting]} - of_all
        for run in runs_of(name, study)
    }
    assert set().union(*changed.values()) == CHANGED[study]
    # What changes nothing is run once: among the objectives, which are judged by more, and elsewhere where it was already.
    unchanged = [run for run, settings in changed.items() if not settings]
    assert unchanged == [f"{name}/objectives/ap/{seed}" for seed in STUDIED[name].seeds if study == "objectives"]


@pytest.mark.parametrize("name", STUDIED)
def test_what_is_compared_with_what_changes_nothing_is_trained_alike(name):
    unchanged = {"mini-imagenet": rows("mini-imagenet", "paper"), "omniglot": runs_of("omniglot", "objectives")}[name]
    [first] = [run for run in unchanged if run.name == f"{STUDIED[name].unchanged}/0"]
    for run in (*runs_of(name, "signs"), *runs_of(name, "batches")):
        assert run.config.run.updates == first.config.run.updates
        assert (run.questions.episodes, run.questions.seed) == (first.questions.episodes, first.questions.seed)


@pytest.mark.parametrize("name", STUDIED)
def test_objectives_are_judged_by_every_metric(name):
    assert len(OBJECTIVES) == 2 * len(METRICS)
    assert {run.questions.retrieval_metrics for run in runs_of(name, "objectives")} == {tuple(METRICS)}
    of_columns = replace(RUNNING, tasks=COLUMNS[name])
    assert {run.questions for run in (*runs_of(name, "signs"), *runs_of(name, "batches"))} == {of_columns}
    [fine] = [run.config for run in runs_of(name, "objectives") if run.name == f"{name}/objectives/precision@5-fine/0"]
    settings = fine.method.settings
    assert [settings[setting] for setting in ("metric", "epsilon", "alpha", "sign")] == ["precision@5", 0.003, 1.0, 1]


def test_what_the_others_are_asked():
    assert {run.questions for run in gap()} == {QUESTIONS}
    assert {run.questions for run in decays()} == {RUNNING}


@pytest.mark.parametrize("name", STUDIED)
def test_signs(name):
    runs = [*runs_of(name, "signs"), *runs_of(name, "objectives")]
    by_name = {run.name: run.config.method.settings for run in runs if run.config.run.seed == 0}
    found = [by_name[f"{study_folder(name, 'signs', variant)}/0"] for variant in [*SIGNS][1:]]
    assert [(each["metric"], each["sign"], each["epsilon"], each["alpha"]) for each in found] == [
        ("ap", -1, 1.0, 1.0),
        ("ap", -1, 0.1, 1.0),
        ("ap", 0, 1.0, 10.0),
        ("ap", 1, 0.003, 1.0),
        ("ap", -1, 0.003, 1.0),
        ("ap", 0, 0.003, 1.0),
    ]
    assert {run.config.run.seed for run in runs_of(name, "signs")} == set(STUDIED[name].seeds)
    assert {run.name.rsplit("/", 1)[0] for run in runs_of(name, "signs")} == {
        f"{name}/signs/{variant}" for variant in ("negative-1", "negative-0.1", "both", "negative-0.003", "both-0.003")
    }


@pytest.mark.parametrize(("name", "classes"), [("mini-imagenet", [4, 16, 32, 8]), ("omniglot", [8, 32, 64, 16])])
def test_batches(name, classes):
    *numbers, usual = classes
    configs = [run.config for run in runs_of(name, "batches") if run.config.run.seed == 0]
    found = [config.batch for config in configs]
    assert {each.size for each in found} == {128}
    near = [(usual, 0.5), (usual, 1.0)]
    assert [(each.classes, each.similar) for each in found] == [*((number, 0.0) for number in numbers), *near, *near]
    assert [config.method.settings["epsilon"] for config in configs] == [1.0] * 5 + [0.003] * 2
    assert {each.similar_by for each in found} - {None} <= set(shipped())
    assert study_folder(name, "batches", f"{usual}-classes-fine") == f"{name}/objectives/ap-fine"


def test_our_recipe_is_one_of_its_trials():
    """And both rivals have had the same ones."""
    for method, variants in DECAYS.items():
        [ours] = [name for name in variants if decay_folder(method, name) == f"mini-imagenet/best/{method}"]
        assert variants[ours][1] == DECAY[method]
    assert DECAYS["map-dlm"] == DECAYS["smooth-ap"]
    before = next(run.config for run in decays() if run.name == "mini-imagenet/decay/map-dlm-before/0")
    assert (before.network.head, before.optimiser.name, before.optimiser.weight_decay) == (None, "adam", 0.0)
