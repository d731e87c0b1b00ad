"""Runs of MAML with what its authors' code has: what they change, and their table."""

import json

import pytest

from rankshot.reproduce.job import settings_of
from rankshot.reproduce.maml_settings import UNCHANGED, maml_runs, maml_table
from rankshot.reproduce.study_tables import page
from rankshot.reproduce.systems import config_of


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_differs_from_the_run_that_changes_nothing(name):
    usual = settings_of(config_of(name, "maml", UNCHANGED[name][0], seed=0))
    changed = {
        run.name.split("/")[2]: {key: value for key, value in settings_of(run.config).items() if value != usual.get(key)}
        for run in maml_runs(name)
    }
    norm, network, full = {"adapt_norm": False}, {"network": "conv4-strided"}, {"updates": 60_000}
    assert (
        changed
        == {
            "omniglot": {
                "all-60000": {**norm, **network, "rate": 2.0, **full},
                "all": {**norm, **network, "rate": 2.0},
                "rate": {"rate": 2.0},
                "strided": network,
                "shared-norm": norm,
                "all-but-rate-60000": {**norm, **network, **full},
            },
            "mini-imagenet": {
                "all-60000": {**norm, "rate": 0.05, **full},
                "rate": {"rate": 0.05},
                "shared-norm": norm,
            },
        }[name]
    )


def write(results, name, config, mean, task):
    path = results / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    test = {"running": {task: {"mean": mean, "interval": 0.002}}}
    content = {"name": name, "config": config.to_json(), "questions": {"episodes": 1000, "batch_episodes": 0}}
    path.write_text(json.dumps({**content, "curve": [], "test": test}))


def test_the_table(tmp_path):
    task = "1-shot 20-way"
    assert maml_table(tmp_path, "omniglot") is None
    label = UNCHANGED["omniglot"][0]
    usual = config_of("omniglot", "maml", label, seed=0)
    write(tmp_path, f"omniglot/systems/{label}/0", usual, 0.9, task)
    assert maml_table(tmp_path, "omniglot") is None  # nothing to compare it with
    [run] = [run for run in maml_runs("omniglot") if run.name == "omniglot/maml/all-60000/0"]
    write(tmp_path, run.name, run.config, 0.95, task)
    assert maml_table(tmp_path, "omniglot").splitlines() == [
        "| Omniglot, MAML: what is changed | updates | episodes | 1-shot 20-way |",
        "| --- | ---: | ---: | ---: |",
        "| as published |  |  | 95.8 |",
        "| nothing | 10,000 | 1,000 | 90.00 ± 0.20 |",
        "| all three | 60,000 | 1,000 | 95.00 ± 0.20 |",
    ]
    assert "MAML with some settings of its authors' code" in page(tmp_path)
