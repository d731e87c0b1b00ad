"""One run a system, and a table that takes each column from the run that was made for it."""

import json

import pytest

from rankshot.methods import SYSTEMS, system
from rankshot.reproduce.plan import METHODS
from rankshot.reproduce.published import COLUMNS, PUBLISHED, TITLES
from rankshot.reproduce.systems import DATA, systems, systems_table
from rankshot.training.loop import given_for


@pytest.mark.parametrize("name", DATA)
def test_every_run_can_be_made(name):
    runs = systems(name)
    assert len({run.name for run in runs}) == len(runs)
    assert {run.config.method for run in runs} == set(SYSTEMS) - set(METHODS)
    for run in runs:
        run.config.check()
        system(run.config.method)(given_for(run.config, (1, 16, 16), 100))
        assert (run.config.split == "trainval") == (name == "omniglot")
    assert systems("cub") == []


def test_each_paper_s_settings():
    omniglot, photographs = ({run.name.split("/")[2]: run.config for run in systems(name)} for name in DATA)
    assert (omniglot["prototypical"].batch_classes, omniglot["prototypical"].decay) == (60, 0.5)
    assert (omniglot["maml-20-way"].batch_classes, omniglot["maml"].batch_classes) == (20, 5)
    assert (photographs["maml"].filters, photographs["maml-5-shot"].filters) == (32, 32)
    assert "shot=5" in photographs["meta-lstm-5-shot"].options


def test_names():
    assert set(TITLES) == set(SYSTEMS)
    assert all(set(methods) <= set(SYSTEMS) for methods in PUBLISHED.values())
    for name, methods in PUBLISHED.items():
        assert all(len(figures) == len(COLUMNS[name]) for figures in methods.values())


def test_a_row_takes_each_column_from_the_run_made_for_it(tmp_path):
    def record(label, **values):
        place = tmp_path / "omniglot" / "systems" / label
        place.mkdir(parents=True)
        tasks = {task.replace("_", " ").replace("x", "-"): {"mean": mean, "interval": 0.0} for task, mean in values.items()}
        content = {"config": {}, "curve": [], "test": {"running": tasks, "batch": tasks}}
        (place / "0.json").write_text(json.dumps(content))

    assert systems_table(tmp_path, "omniglot", "running") is None
    record("maml", **{"1xshot_5xway": 0.9, "5xshot_5xway": 0.95})
    record("maml-20-way", **{"1xshot_5xway": 0.1, "1xshot_20xway": 0.8, "5xshot_20xway": 0.85})
    table = systems_table(tmp_path, "omniglot", "running")
    assert "| MAML, as published | 98.7 | 95.8 | 99.9 | 98.9 | – | – |" in table
    assert "| MAML, here | 90.0 | 80.0 | 95.0 | 85.0 | – | – |" in table
    assert "MAML was trained for 20,000 of its paper's 60,000 updates." in table
    assert "NCA" not in table
