"""Every run of the studies can be made, is the paper's recipe but for one thing, and is asked alike."""

import pytest

from rankshot.methods import Context, make_method
from rankshot.models.shipped import shipped
from rankshot.reproduce.gap import QUESTIONS, VARIANTS, gap
from rankshot.reproduce.job import settings_of
from rankshot.reproduce.plan import BENCHMARKS, DECAY, RUNNING
from rankshot.reproduce.studies import (
    BATCHES,
    DECAYS,
    METRICS,
    OBJECTIVES,
    SIGNS,
    batches,
    decay_folder,
    decays,
    objectives,
    signs,
    studies,
)

PAPER = BENCHMARKS["mini-imagenet"].config("paper", "map-dlm")


def test_every_run_can_be_made():
    runs = studies("mini-imagenet")
    assert len({run.name for run in runs}) == len(runs) == len(gap()) + 10 + 6 + 5 + 6 + 16
    for run in runs:
        assert run.name.split("/")[0] == "mini-imagenet"
        make_method(run.config.method, Context(64, 64, run.config.batch.classes, run.config.batch.size))
        assert (run.questions.episodes, run.questions.seed) == (10_000, 100)
        assert run.config.run.seed == int(run.name.rsplit("/", 1)[1])
    assert {run.name.split("/")[2] for run in gap()} == set(VARIANTS)
    assert studies("omniglot") == studies("cub") == []


@pytest.mark.parametrize(
    ("runs", "changed"),
    [
        (objectives(), {"metric", "epsilon", "alpha"}),
        (signs(), {"sign", "epsilon", "alpha", "seed"}),
        (batches(), {"batch_classes", "batch_similar", "batch_similar_by"}),
    ],
    ids=["objectives", "signs", "batches"],
)
def test_what_differs_from_the_paper(runs, changed):
    usual = settings_of(PAPER)
    for run in runs:
        settings = settings_of(run.config)
        assert {name for name in usual if settings[name] != usual[name]} <= changed
    # The paper's own is a row of the table: it is run again only where it is judged by more.
    assert any(settings_of(run.config) == usual for run in runs) == ("metric" in changed)


def test_objectives_are_judged_by_every_metric():
    assert len(OBJECTIVES) == 2 * len(METRICS)
    assert {run.questions.retrieval_metrics for run in objectives()} == {tuple(METRICS)}
    assert {run.questions for run in gap()} == {QUESTIONS}
    assert {run.questions for run in (*signs(), *batches(), *decays())} == {RUNNING}
    fine = next(run.config for run in objectives() if run.name == "mini-imagenet/objectives/precision@5-fine/0")
    settings = fine.method.settings
    assert [settings[name] for name in ("metric", "epsilon", "alpha", "sign")] == ["precision@5", 0.003, 1.0, 1]


def test_signs_and_batches():
    by_name = {run.name.split("/", 1)[1]: run.config for run in (*signs(), *batches())}
    found = {name: by_name[f"signs/{name}/1"].method.settings for name in [*SIGNS][1:]}
    assert [(each["sign"], each["epsilon"], each["alpha"]) for each in found.values()] == [
        (-1, 1.0, 1.0),
        (-1, 0.1, 1.0),
        (0, 1.0, 10.0),
    ]
    found = [by_name[f"batches/{name}/0"].batch for name in [*BATCHES][1:]]
    assert {each.size for each in found} == {128}
    assert [(each.classes, each.similar) for each in found] == [
        (4, 0.0),
        (16, 0.0),
        (32, 0.0),
        (8, 0.5),
        (8, 1.0),
    ]
    assert {each.similar_by for each in found} - {None} <= set(shipped())


def test_our_recipe_is_one_of_its_trials():
    """And both rivals have had the same ones."""
    for method, variants in DECAYS.items():
        [ours] = [name for name in variants if decay_folder(method, name) == f"mini-imagenet/best/{method}"]
        assert variants[ours][1] == DECAY[method]
    assert DECAYS["map-dlm"] == DECAYS["smooth-ap"]
    before = next(run.config for run in decays() if run.name == "mini-imagenet/decay/map-dlm-before/0")
    assert (before.network.head, before.optimiser.name, before.optimiser.weight_decay) == (None, "adam", 0.0)
