"""Runs of slow systems by their number of updates, from small records whose figures are known."""

import json

from benchmarks.tables import lengths as module
from benchmarks.tables.lengths import lengths


def write(folder, name, updates, mean, task, **more):
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    test = {norm: {task: {"mean": mean, "interval": 0.01}} for norm in ("running", "batch")}
    config = {"method": "maml", "updates": updates, "schedule": "cosine"}
    path.write_text(json.dumps({"config": config, "questions": {"episodes": 50}, "test": test, "curve": [], **more}))


def test_a_run_is_told_under_the_task_that_it_was_made_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    write(tmp_path, "mini-imagenet/systems/maml/0", 48_000, 0.5, "1-shot 5-way")
    write(tmp_path, "mini-imagenet/earlier/maml/0", 30_000, 0.4, "1-shot 5-way", stopped_at=26_000)
    write(tmp_path, "omniglot/systems/maml-20-way/0", 10_000, 0.9, "1-shot 20-way")
    assert lengths("maml").splitlines()[2:] == [
        "| Omniglot, 1-shot 20-way | as published |  | 95.8 |  |  |",
        "| Omniglot, 1-shot 20-way | 10,000 | falls to 0 | 90.00 ± 1.00 | 50 "
        "| [json](../results/omniglot/systems/maml-20-way/0.json) |",
        "| mini-ImageNet, 1-shot 5-way | as published |  | 48.70 |  |  |",
        "| mini-ImageNet, 1-shot 5-way | 26,000 of 30,000 | falls to 0 | 40.00 ± 1.00 | 50 "
        "| [json](../results/mini-imagenet/earlier/maml/0.json) |",
        "| mini-ImageNet, 1-shot 5-way | 48,000 | falls to 0 | 50.00 ± 1.00 | 50 "
        "| [json](../results/mini-imagenet/systems/maml/0.json) |",
    ]
