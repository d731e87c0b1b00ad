"""Runs of systems with other settings than those of their presets: what they change, and their table."""

import json

import pytest

from rankshot.reproduce.job import settings_of
from rankshot.reproduce.study_tables import page
from rankshot.reproduce.system_settings import SYSTEMS, setting_runs, settings_table
from rankshot.reproduce.systems import config_of


@pytest.mark.parametrize(("system", "name"), [(system, name) for system, of_data in SYSTEMS.items() for name in of_data])
def test_what_differs_from_the_run_that_changes_nothing(system, name):
    study = SYSTEMS[system][name]
    usual = settings_of(config_of(name, system, study.label, seed=0, **study.shorter))
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
                "sum": {"scale": 1.0},
                "sum-float32": {"scale": 1.0, "precision": "float32"},
                "cosine": {"schedule": "cosine"},
                "decay": {"augment": ["flip"], "optimiser": "adamw", "weight_decay": 0.1},
            },
            ("maml", "omniglot"): {
                "nothing": {},
                "short": {"rate": 0.1},
                "pooled": network,
                "adapted-norm": norm,
                "all": {"rate": 0.1, **network, **norm},
            },
            ("maml", "mini-imagenet"): {
                "nothing": {},
                "short": {"rate": 0.01},
                "adapted-norm": norm,
                "all": {"rate": 0.01, **norm},
            },
        }[system, name]
    )


def write(results, name, config, mean, task):
    path = results / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    test = {"running": {task: {"mean": mean, "interval": 0.002}}}
    content = {"name": name, "config": config.to_json(), "questions": {"episodes": 1000, "batch_episodes": 0}}
    path.write_text(json.dumps({**content, "curve": [], "test": test}))


@pytest.mark.parametrize(
    ("system", "name", "place", "task", "published", "updates"),
    [
        ("maml", "omniglot", "maml/nothing", "1-shot 20-way", "95.8", "6,000"),  # the study has a run that changes nothing
        ("prototypical", "mini-imagenet", "systems/prototypical-5-shot", "5-shot 5-way", "68.20", "16,000"),
    ],
)
def test_the_table(tmp_path, system, name, place, task, published, updates):
    study = SYSTEMS[system][name]
    variant, (words, _) = list(study.variants.items())[-1]
    [run] = [run for run in setting_runs(name) if run.name == f"{name}/{system}/{variant}/0"]
    assert settings_table(system, tmp_path, name) is None
    write(tmp_path, run.name, run.config, 0.95, task)
    assert settings_table(system, tmp_path, name) is None  # nothing to compare it with
    (tmp_path / f"{run.name}.json").unlink()
    usual = config_of(name, system, study.label, seed=0, **study.shorter)
    write(tmp_path, f"{name}/{place}/0", usual, 0.9, task)
    assert settings_table(system, tmp_path, name) is None  # nothing to compare
    write(tmp_path, run.name, run.config, 0.95, task)
    head, _, as_published, nothing, changed = settings_table(system, tmp_path, name).splitlines()
    assert head.endswith(f": what is changed | updates | episodes | {task} |")
    assert as_published == f"| as published |  |  | {published} |"
    assert nothing == f"| nothing (1 seed) | {updates} | 1,000 | 90.00 ± 0.20 (–) |"
    assert changed == f"| {words} (1 seed) | {updates} | 1,000 | 95.00 ± 0.20 (–) |"


def test_the_page_has_it(tmp_path):
    for run in setting_runs("omniglot"):
        write(tmp_path, run.name, run.config, 0.9, "1-shot 20-way")
    assert "MAML without something that its authors' code has" in page(tmp_path)
