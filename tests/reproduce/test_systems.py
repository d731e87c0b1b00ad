"""One run a system, and a table that takes each column from the run that was made for it."""

import json

import pytest

from rankshot.methods import METHODS, Context, make_method
from rankshot.reproduce.plan import METHODS as IN_THE_PAPER
from rankshot.reproduce.published import COLUMNS, PUBLISHED, TITLES
from rankshot.reproduce.systems import ANSWERERS, ONE_SEED, label_for, systems, systems_table

NAMES = ("omniglot", "mini-imagenet")


def made(config):
    return make_method(config.method, Context(64, 100, config.batch.classes, config.batch.size))


@pytest.mark.parametrize("name", NAMES)
def test_every_run_can_be_made(name):
    runs = systems(name)
    assert len({run.name for run in runs}) == len(runs)
    assert {run.config.method.name for run in runs} == set(METHODS) - set(IN_THE_PAPER)
    for run in runs:
        made(run.config)
        assert (run.config.data.split == "trainval") == (name == "omniglot")
        assert run.config.run.seed == int(run.name.rsplit("/", 1)[1])
        assert run.questions.episodes == (1_000 if run.name == "omniglot/systems/arc/0" else 10_000)
        assert set(run.questions.tasks) <= set(COLUMNS[name])
    for method in {run.config.method.name for run in runs}:
        seeds = {run.config.run.seed for run in runs if run.config.method.name == method}
        assert seeds == ({0, 1, 2} if method in PUBLISHED[name] and method not in ONE_SEED else {0})
    assert systems("cub") == []


def test_each_paper_s_settings():
    omniglot, photographs = ({run.name.split("/")[2]: run.config for run in systems(name)} for name in NAMES)
    assert (omniglot["prototypical"].batch.classes, omniglot["prototypical"].optimiser.decay) == (60, 0.5)
    assert (omniglot["maml-20-way"].batch.classes, omniglot["maml"].batch.classes) == (20, 5)
    filters = [photographs[name].network.architecture.settings["filters"] for name in ("maml", "maml-5-shot")]
    assert filters == [32, 32]
    assert photographs["meta-lstm-5-shot"].method.settings["shot"] == 5
    assert {(c.data.name, c.data.rotations) for c in omniglot.values()} == {("omniglot", True)}
    assert {(c.data.name, c.data.rotations) for c in photographs.values()} == {("mini-imagenet", False)}


@pytest.mark.parametrize(
    ("label", "way", "shot", "queries", "tasks"),  # of a training batch, as the papers have it
    [
        ("omniglot/systems/prototypical", 60, 1, 5, 1),
        ("omniglot/systems/prototypical-5-shot", 60, 5, 5, 1),
        ("mini-imagenet/systems/prototypical", 30, 1, 15, 1),
        ("mini-imagenet/systems/prototypical-5-shot", 20, 5, 15, 1),
        ("omniglot/systems/maml", 5, 1, 1, 32),
        ("omniglot/systems/maml-5-shot", 5, 5, 5, 32),
        ("omniglot/systems/maml-20-way", 20, 1, 1, 16),
        ("omniglot/systems/maml-20-way-5-shot", 20, 5, 5, 16),
        ("mini-imagenet/systems/maml", 5, 1, 15, 4),
        ("mini-imagenet/systems/maml-5-shot", 5, 5, 15, 2),
        ("mini-imagenet/systems/meta-lstm", 5, 1, 15, 1),
        ("mini-imagenet/systems/meta-lstm-5-shot", 5, 5, 15, 1),
        ("mini-imagenet/systems/matching-fce-5-shot", 5, 5, 15, 1),
    ],
)
def test_episodes_of_training(label, way, shot, queries, tasks):
    (run,) = (run for name in NAMES for run in systems(name) if run.name == f"{label}/0")
    method = made(run.config)
    assert (method.way, method.shot, method.per_class - method.shot, method.tasks) == (way, shot, queries, tasks)


def test_which_run_answers_which_column():
    tasks = COLUMNS["omniglot"]
    assert [label_for("omniglot", "maml", task) for task in tasks] == [
        "maml",
        "maml-20-way",
        "maml-5-shot",
        "maml-20-way-5-shot",
        "maml",
        "maml",
    ]
    assert [label_for("omniglot", "prototypical", task) for task in tasks][1:4] == ["prototypical"] + [
        "prototypical-5-shot"
    ] * 2
    assert {label_for("omniglot", "nca", task) for task in tasks} == {"nca"}


@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_asked_of_the_run_that_it_is_taken_from(name):
    asked = {run.name.split("/")[2]: run.questions.tasks for run in systems(name)}
    for method in {run.config.method.name for run in systems(name)}:
        for task in COLUMNS[name]:
            is_asked = "-shot" in task or method not in ANSWERERS
            assert (task in asked[label_for(name, method, task)]) == is_asked
    assert asked["nca"] == asked["matching-fce-5-shot"] == COLUMNS[name]
    assert asked["maml-5-shot"] == ("5-shot 5-way",)  # to ask it takes long


def test_names():
    assert set(TITLES) == set(METHODS)
    assert all(set(methods) <= set(METHODS) for methods in PUBLISHED.values())
    for name, methods in PUBLISHED.items():
        assert all(len(figures) == len(COLUMNS[name]) for figures in methods.values())


def test_a_row_takes_each_column_from_the_run_made_for_it(tmp_path):
    def record(label, seed=0, more=None, **values):
        place = tmp_path / "omniglot" / "systems" / label
        place.mkdir(parents=True, exist_ok=True)
        tasks = {task.replace("_", " ").replace("x", "-"): {"mean": mean, "interval": 0.0} for task, mean in values.items()}
        config = {"updates": 6000, "schedule": "cosine"} if "way" in label else {"updates": 15000, "schedule": "constant"}
        content = {
            "name": f"omniglot/systems/{label}/0",
            "config": config,
            "curve": [],
            "questions": {"episodes": 700},
            "test": {"running": tasks, "batch": tasks},
            **(more or {}),
        }
        (place / f"{seed}.json").write_text(json.dumps(content))

    assert systems_table(tmp_path, "omniglot", "running") is None
    record("maml", **{"1xshot_5xway": 0.9, "5xshot_5xway": 0.2})
    record("maml-5-shot", **{"1xshot_5xway": 0.1, "5xshot_5xway": 0.95})
    record("maml-20-way", **{"1xshot_5xway": 0.1, "1xshot_20xway": 0.8, "5xshot_20xway": 0.1})
    table = systems_table(tmp_path, "omniglot", "running")
    assert "| MAML, as published | 98.7 | 95.8 | 99.9 | 98.9 | – | – |" in table
    assert "| MAML, here | 90.0 | 80.0 | 95.0 | – | – | – |" in table
    told = (
        "15,000 of 60,000 (maml); 6,000 of 60,000 (maml-20-way, learning rate falls to 0); 15,000 of 60,000 (maml-5-shot)."
    )
    assert "1 seed and 700 episodes per task: MAML." in table
    assert f"Updates of MAML, of its authors' where known: {told}" in table
    assert "from the published figure: MAML -8.7 (1-shot 5-way), MAML -15.8 (1-shot 20-way), MAML -4.9 (5-shot" in table
    assert "Not run yet: map-dlm, map-ssvm, siamese, nearest," in table
    assert ", prototypical-5-shot, maml-20-way-5-shot, meta-lstm," in table
    assert "NCA" not in table
    assert "Stopped early" not in table
    record("memory", more={"cut_from": 18_000}, **{"1xshot_5xway": 0.9})
    assert "Stopped early: memory after 15,000 of 18,000 updates." in systems_table(tmp_path, "omniglot", "running")
