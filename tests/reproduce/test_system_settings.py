"""Runs of systems with other settings than those of their presets: what they change, and their table."""

import json

import pytest

from rankshot.reproduce.job import settings_of
from rankshot.reproduce.study_tables import page
from rankshot.reproduce.system_settings import SYSTEMS, setting_runs, settings_table
from rankshot.reproduce.systems import config_of


@pytest.mark.parametrize(("system", "name"), [(system, name) for system, of_data in SYSTEMS.items() for name in of_data])
def test_what_differs_from_the_run_that_changes_nothing(system, name):
    usual = settings_of(config_of(name, system, SYSTEMS[system][name].label, seed=0))
    changed = {
        run.name.split("/")[2]: {key: value for key, value in settings_of(run.config).items() if value != usual.get(key)}
        for run in setting_runs(name)
        if run.name.startswith(f"{name}/{system}/") and run.name.endswith("/0")
    }
    norm, network = {"adapt_norm": True}, {"network": "conv4"}
    assert (
        changed
        == {
            ("prototypical", "mini-imagenet"): {
                "mean": {"scale": 0.000625, "updates": 22_000},
                "scale-0.1": {"scale": 0.1},
                "sum": {"scale": 1.0},
                "float32": {"precision": "float32"},
                "sum-float32": {"scale": 1.0, "precision": "float32"},
                "cosine": {"schedule": "cosine"},
                "decay": {"augment": ["flip"], "optimiser": "adamw", "weight_decay": 0.1},
            },
            ("maml", "omniglot"): {
                "short": {"rate": 0.1},
                "pooled": network,
                "adapted-norm": norm,
            },
            ("maml", "mini-imagenet"): {
                "short": {"rate": 0.01},
                "adapted-norm": norm,
            },
        }[system, name]
    )


def write(results, name, config, mean, task):
    path = results / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    test = {"running": {task: {"mean": mean, "interval": 0.002}}}
    content = {"name": name, "config": config.to_json(), "questions": {"episodes": 1000, "batch_episodes": 0}}
    path.write_text(json.dumps({**content, "curve": [], "test": test}))


def test_the_table(tmp_path):
    task = "1-shot 20-way"
    assert settings_table("maml", tmp_path, "omniglot") is None
    [run] = [run for run in setting_runs("omniglot") if run.name == "omniglot/maml/short/0"]
    write(tmp_path, run.name, run.config, 0.95, task)
    assert settings_table("maml", tmp_path, "omniglot") is None  # nothing to compare it with
    (tmp_path / f"{run.name}.json").unlink()
    label = SYSTEMS["maml"]["omniglot"].label
    usual = config_of("omniglot", "maml", label, seed=0)
    write(tmp_path, f"omniglot/systems/{label}/0", usual, 0.9, task)
    assert settings_table("maml", tmp_path, "omniglot") is None  # nothing to compare
    write(tmp_path, run.name, run.config, 0.95, task)
    assert settings_table("maml", tmp_path, "omniglot").splitlines() == [
        "| Omniglot, MAML: what is changed | updates | episodes | 1-shot 20-way |",
        "| --- | ---: | ---: | ---: |",
        "| as published |  |  | 95.8 |",
        "| nothing (1 seed) | 60,000 | 1,000 | 90.00 ± 0.20 (–) |",
        "| steps of a twentieth of the length (1 seed) | 60,000 | 1,000 | 95.00 ± 0.20 (–) |",
    ]
    assert "MAML without something that its authors' code has" in page(tmp_path)
